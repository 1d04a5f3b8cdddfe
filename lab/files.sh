# The files of every host, laid before it boots: the legacy cluster in lab/legacy, fitted to the choices.
# To be sourced after choices.sh; $image is the root file system that all hosts share.
# shellcheck shell=bash disable=SC2153,SC2154

PREFIX_DIR=/usr/local/slurm                 # where the source build lives
ASIDE=/usr/share/hpcguard-lab               # where the image keeps Debian's units of Slurm
OWN_INIT=$ASIDE/init                        # PID 1 of a host that cannot boot on this machine without
pure_cgroup2() { [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; }

enable() {  # ROOT TARGET UNIT...: what `systemctl enable` would do
    local root=$1 target=$2 unit directory; shift 2
    mkdir -p "$root/etc/systemd/system/$target.wants"
    for unit; do
        directory=/lib/systemd/system
        [[ ! -e $root/etc/systemd/system/$unit ]] || directory=/etc/systemd/system
        ln -sf "$directory/$unit" "$root/etc/systemd/system/$target.wants/$unit"
    done
}

# The keys of this lab: one for people and Ansible, one for the controllers' root, a host key for each host.
make_keys() {
    local name
    dd if=/dev/urandom of="$STATE/munge.key" bs=1024 count=1 status=none
    for name in id_ed25519 controller_root "${HOSTS[@]/%/.hostkey}"; do
        ssh-keygen -q -t ed25519 -N '' -C "hpcguard lab" -f "$STATE/$name"
    done
    for name in "${HOSTS[@]}"; do
        printf '%s,%s %s\n' "$name" "${ADDRESS[$name]}" "$(cut -d' ' -f1,2 "$STATE/$name.hostkey.pub")"
    done >"$STATE/known_hosts"
}

owned() { chroot "$1" chown "$2" "${@:3}"; }

common_files() {    # ROOT HOST
    local root=$1 host=$2 name
    install -d -m 0700 "$root/root/.ssh"
    install -m 0600 "$STATE/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
    install -m 0600 "$STATE/$host.hostkey" "$root/etc/ssh/ssh_host_ed25519_key"
    install -m 0644 "$STATE/$host.hostkey.pub" "$root/etc/ssh/ssh_host_ed25519_key.pub"
    install -m 0400 "$STATE/munge.key" "$root/etc/munge/munge.key"
    owned "$root" munge:munge /etc/munge/munge.key
    {
        printf '127.0.0.1 localhost\n'
        for name in "${HOSTS[@]}"; do printf '%s %s\n' "${ADDRESS[$name]}" "$name"; done
    } >"$root/etc/hosts"
    enable "$root" multi-user.target ssh.service munge.service
}

# --- the legacy cluster, as a source build --------------------------------------------------------

role_files() {  # ROOT ROLE PROGRAM...: the tree of a role, and its daemons under the prefix
    local root=$1 role=$2 program; shift 2
    cp -r "$lab/legacy/$role/." "$root/"
    mkdir -p "$root$PREFIX_DIR/bin" "$root$PREFIX_DIR/sbin"
    for program; do ln -s "/usr/sbin/$program" "$root$PREFIX_DIR/sbin/"; done
    for program in sacct sacctmgr salloc sattach sbatch sbcast scancel scontrol sdiag sinfo sprio squeue sreport srun sshare sstat strigger; do
        ln -sf "/usr/bin/$program" "$root$PREFIX_DIR/bin/$program"
    done
}

controller_files() {    # ROOT
    local root=$1
    role_files "$root" controller slurmctld
    install -d "$root/var/spool/slurmctld"
    owned "$root" slurm:slurm /var/spool/slurmctld
    install -m 0600 "$STATE/controller_root" "$root/root/.ssh/id_ed25519"
    install -m 0644 "$STATE/known_hosts" "$root/root/.ssh/known_hosts"
}

dbd_files() {   # ROOT
    local root=$1
    role_files "$root" dbd slurmdbd
    owned "$root" slurm:slurm "$PREFIX_DIR/etc/slurmdbd.conf"
    chmod 0600 "$root$PREFIX_DIR/etc/slurmdbd.conf"
    # MariaDB 11.6 and newer turn this on, and slurmdbd dies of it when two transactions meet.
    [[ $RELEASE != trixie && $RELEASE != sid ]] ||
        printf '[mariadbd]\ninnodb_snapshot_isolation=OFF\n' >"$root/etc/mysql/mariadb.conf.d/99-slurm.cnf"
    enable "$root" multi-user.target mariadb.service slurmdbd.service
}

compute_files() {   # ROOT
    local root=$1
    role_files "$root" compute slurmd slurmstepd
    install -d "$root/var/spool/slurmd"
    cat "$STATE/controller_root.pub" >>"$root/root/.ssh/authorized_keys"
    [[ $CONF != files ]] || cp -r "$lab/legacy/controller$PREFIX_DIR/etc" "$root$PREFIX_DIR/"
}

# Where users log in: Slurm's commands with a slurm.conf, and none of its daemons.
login_files() { # ROOT
    local root=$1
    role_files "$root" login
    cp -r "$lab/legacy/controller$PREFIX_DIR/etc" "$root$PREFIX_DIR/"
}

# --- what the choices make of it ------------------------------------------------------------------

edit() {    # FILE... SED-SCRIPT: in the files that are there
    local script=${*: -1} file
    for file in "${@:1:$#-1}"; do [[ ! -e $file ]] || sed -i -E "$script" "$file"; done
}

fit_configuration() {   # ETC UNITS
    local conf=$1/slurm.conf slurmd=$2/slurmd.service
    case $TOPOLOGY in
        backup)
            edit "$conf" 's/^#(SlurmctldHost=k8s-master-02)/\1/'
            edit "$slurmd" 's/--conf-server \S+/&,k8s-master-02:6817/'
            ;;
        dbd)
            edit "$conf" "s/^(AccountingStorageHost)=.*/\1=$DBD/"
            edit "$1/slurmdbd.conf" "s/^(DbdHost)=.*/\1=$DBD/"
            ;;
        noacct) edit "$conf" '/^AccountingStorage/d' ;;
    esac
    if [[ $CONF == files ]]; then
        edit "$conf" '/^SlurmctldParameters=enable_configless/d'
        edit "$slurmd" 's/ --conf-server \S+//'
    fi
}

fit_release() { # ROOT ETC UNITS
    local root=$1 etc=$2 units=$3 unit package type options
    # Type and options that belong together are those of the release's own units: -D, -D -s or --systemd.
    for unit in slurmd slurmctld slurmdbd; do
        package=$root$ASIDE/package-units/$unit.service
        type=$(sed -n 's/^Type=//p' "$package")
        options=$(sed -nE 's/^ExecStart=\S+ (.*) \$.*/\1/p' "$package")
        edit "$units/$unit.service" "s/^Type=simple/Type=$type/; s/ -D -s/ $options/"
    done
    # With --systemd slurmctld leaves it to its unit to become SlurmUser.
    edit "$units/slurmctld.service" 's/^Type=notify/&\nUser=slurm\nGroup=slurm\nRuntimeDirectory=slurmctld/'
    # Slurm 20.11 hands out slurm.conf without the files that it includes.
    if [[ $RELEASE == bullseye && $CONF == configless && -e $etc/site.conf ]]; then
        sed -i -e "/^Include site.conf/{r $etc/site.conf" -e 'd}' "$etc/slurm.conf"
        rm "$etc/site.conf"
    fi
    # systemd 258 and newer runs on cgroup v2 alone, whatever the machine has; Slurm finds its controllers beside it.
    if [[ $RELEASE == sid ]] && ! pure_cgroup2; then
        install -D -m 0755 "$lab/cgroup2-init.sh" "$root$OWN_INIT"
        [[ ! -e $etc/cgroup.conf ]] || printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/cg1\n' >>"$etc/cgroup.conf"
    fi
}

# The image has the init scripts of all daemons, from which systemd would make units. The default lab has always had them.
drop_foreign_services() {   # ROOT UNITS
    local unit
    [[ $RELEASE/$LAYOUT/$TOPOLOGY != bookworm/source/one ]] || return 0
    for unit in slurmd slurmctld slurmdbd; do
        [[ -e $2/$unit.service ]] || rm -f "$1/etc/init.d/$unit"
    done
}

# Debian's own units, programs and paths instead of the source build's.
to_package_layout() {   # ROOT
    local root=$1 units=$1/etc/systemd/system unit options
    for unit in slurmd slurmctld slurmdbd; do
        [[ -e $units/$unit.service ]] || continue
        if [[ $unit == slurmd ]]; then
            options=$(sed -nE 's/^ExecStart=.*( --conf-server \S+).*/\1/p' "$units/slurmd.service")
            printf 'SLURMD_OPTIONS="%s"\n' "${options# }" >"$root/etc/default/slurmd"
            # The unit of Debian 11 and 12 wants a slurm.conf on the node.
            if [[ $CONF == configless ]] && grep -q ^ConditionPathExists= "$root$ASIDE/package-units/slurmd.service"; then
                mkdir -p "$units/slurmd.service.d"
                printf '[Unit]\nConditionPathExists=\n' >"$units/slurmd.service.d/configless.conf"
            fi
        fi
        # slurmdbd as User=slurm, from Debian 13 on, writes into a directory of its own.
        ! grep -q ^RuntimeDirectory=slurmdbd "$root$ASIDE/package-units/$unit.service" ||
            edit "$root$PREFIX_DIR/etc/slurmdbd.conf" 's,^PidFile=.*,PidFile=/run/slurmdbd/slurmdbd.pid,'
        rm "$units/$unit.service"
        cp "$root$ASIDE/package-units/$unit.service" "$root/lib/systemd/system/"
    done
    mkdir "$root/etc/slurm"
    [[ ! -d $root$PREFIX_DIR/etc ]] || cp -r --preserve=all "$root$PREFIX_DIR/etc/." "$root/etc/slurm"
    rm -rf "$root$PREFIX_DIR" "$root/etc/profile.d/slurm.sh" "$root/etc/sysconfig"
}

# EL7 knows no other Python.
to_python_2() { # ROOT
    local root=$1
    rm -rf "$root"/usr/bin/{python3*,py3*} "$root"/usr/lib/python3*
    edit "$root"/etc/systemd/system/slurm-cluster-health*.service 's,/usr/bin/python3,/usr/bin/python2.7,'
    edit "$root/usr/local/bin/cluster_health_check.py" '1c#!/usr/bin/env python2.7\n# -*- coding: utf-8 -*-'
}

lay_files() {   # HOST
    local host=$1 root=$STATE/$1/root
    mkdir -p "$STATE/$host"/{upper,work,root,journal}
    mount -t overlay "hpcguard-$PREFIX$host" -o "lowerdir=$image,upperdir=$STATE/$host/upper,workdir=$STATE/$host/work" "$root"
    common_files "$root" "$host"
    ! is_controller "$host" || controller_files "$root"
    [[ $host != "$DBD" ]] || dbd_files "$root"
    [[ $host != "$LOGIN" ]] || login_files "$root"
    ! is_node "$host" || compute_files "$root"
    fit_configuration "$root$PREFIX_DIR/etc" "$root/etc/systemd/system"
    fit_release "$root" "$root$PREFIX_DIR/etc" "$root/etc/systemd/system"
    drop_foreign_services "$root" "$root/etc/systemd/system"
    if [[ $LAYOUT == package ]]; then
        to_package_layout "$root"
    elif [[ -d $root$PREFIX_DIR/etc ]]; then
        ln -s "$PREFIX_DIR/etc" "$root/etc/slurm"
    fi
    [[ $PYTHON == 3 ]] || to_python_2 "$root"
}
