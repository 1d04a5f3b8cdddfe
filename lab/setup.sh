#!/bin/bash
# From a bare Debian to everything the lab and the tests need. What takes long runs side by side:
# the image (mmdebstrap), the packages (apt) and the Python environment (pip).
. "$(dirname "$0")/lib.sh"
lab=$REPO/lab

"$lab/install.sh" mmdebstrap
"$lab/image.sh" & image=$!
"$lab/install.sh" || { wait $image; die "packages are missing"; }
"$lab/venv.sh" || { wait $image; die "the Python environment is not complete"; }
wait $image || die "no image"
