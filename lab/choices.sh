# What the lab stands for: its choices, and the hosts that follow from them. To be sourced after lib.sh.
# shellcheck shell=bash disable=SC2034

one_of() {  # NAME VALUE...: the first value is the default
    local name=$1; shift
    declare -g "$name=${!name:-$1}"
    [[ " $* " == *" ${!name} "* ]] || die "$name must be one of $*, not '${!name}'"
}

CHOICES=(RELEASE LAYOUT CONF TOPOLOGY PYTHON)
one_of RELEASE bookworm bullseye trixie sid     # Slurm 22.05, 20.11, 24.11, 26.05; systemd 252, 247, 257, 262
one_of LAYOUT source package                    # all under /usr/local/slurm, or Debian's own units, programs and /etc/slurm
one_of CONF configless files                    # slurmd --conf-server, or slurm.conf on every node
one_of TOPOLOGY one backup dbd noacct login     # one controller; a second one; slurmdbd on its own host; no accounting; a login node
one_of PYTHON 3 2.7                             # what the hosts have; 2.7 stands for EL7
[[ $PYTHON == 3 || $RELEASE == bullseye ]] || die "PYTHON=2.7 needs RELEASE=bullseye"

CONTROLLERS=(k8s-master-01)
DBD=k8s-master-01
LOGIN=''
NODES=(k8s-node-01 k8s-node-02 k8s-node-03)
case $TOPOLOGY in
    backup) CONTROLLERS+=(k8s-master-02) ;;
    dbd) DBD=k8s-dbd-01 ;;
    noacct) DBD='' ;;
    login) LOGIN=k8s-login-01 ;;
esac
CONTROLLER=${CONTROLLERS[0]}
HOSTS=("${CONTROLLERS[@]}")
[[ -z $DBD || $DBD == "$CONTROLLER" ]] || HOSTS+=("$DBD")
HOSTS+=(${LOGIN:+"$LOGIN"} "${NODES[@]}")

declare -A ADDRESS=(
    [k8s-master-01]=$SUBNET.11 [k8s-master-02]=$SUBNET.12 [k8s-dbd-01]=$SUBNET.13 [k8s-login-01]=$SUBNET.14
    [k8s-node-01]=$SUBNET.21 [k8s-node-02]=$SUBNET.22 [k8s-node-03]=$SUBNET.23
)

is_controller() { [[ " ${CONTROLLERS[*]} " == *" $1 "* ]]; }
is_node() { [[ " ${NODES[*]} " == *" $1 "* ]]; }
