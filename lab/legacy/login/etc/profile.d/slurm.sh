export PATH=/usr/local/slurm/bin:/usr/local/slurm/sbin:$PATH
