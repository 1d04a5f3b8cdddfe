# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why Slurm says a job waits or failed: every reason of 20.11 to 26.05, who can do something about it, and what. Pure.

The names of limits follow a pattern (scope, kind, what is counted, for whom), so their texts are made from it. squeue prints
a sentence instead of the name where slurmctld has one, so sentences are looked at first.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# The classes of a waiting job, exactly one each.
WAIT, OWN, NEVER, CHANGE, ADMIN = "wait", "own_choice", "never", "change_request", "admin"
CLASSES = {
    WAIT: (u"只需等待", u"just wait"),
    OWN: (u"取决于用户自己", u"waits for the user's own choice"),
    NEVER: (u"永远不会开始", u"will never start"),
    CHANGE: (u"需要修改申请", u"the request must change"),
    ADMIN: (u"需要管理员", u"needs an admin"),
}
WHO = {WAIT: "nobody", OWN: "user", NEVER: "user", CHANGE: "user", ADMIN: "admin"}

# name -> (family, class, Chinese, English, next step in Chinese, next step in English)
REASONS = {
    "None": (
        "none", WAIT, u"调度器尚未检查", u"the scheduler has not looked at it yet",
        u"稍后再查; 若长期如此, 队列长度可能超过 bf_max_job_test", u"look again; if it stays, the queue is longer than bf_max_job_test",
    ),
    "Priority": (
        "queue", WAIT, u"前面有优先级更高的作业", u"jobs of higher priority come first",
        u"sprio -l 与 squeue --start 查看; 缩短 --time 有利于回填",
        u"see sprio -l, squeue --start; a shorter --time lets it be backfilled",
    ),
    "Resources": (
        "queue", WAIT, u"等待资源空出", u"it waits for resources to become free", u"squeue --start 查看预计开始时间",
        u"see squeue --start",
    ),
    "Dependency": (
        "user-asked", WAIT, u"等待它所依赖的作业", u"it waits for the jobs that it depends on",
        u"等待, 或 scontrol update jobid=ID dependency=", u"wait, or scontrol update jobid=ID dependency=",
    ),
    "BeginTime": (
        "user-asked", WAIT, u"未到开始时间 (也可能是重新排队后的间隔)", u"its begin time is still to come (after a requeue: a pause)",
        u"等待, 或 scontrol update jobid=ID StartTime=now", u"wait, or scontrol update jobid=ID StartTime=now",
    ),
    "DependencyNeverSatisfied": (
        "dead", NEVER, u"依赖的作业已失败, 条件不可能满足", u"a job it depends on ended otherwise, so it can never start",
        u"scancel 后重新提交, 或修改 dependency=", u"scancel and submit again, or change its dependency=",
    ),
    "JobHeldUser": ("held", OWN, u"被用户挂起", u"held by its user", u"scontrol release ID", u"scontrol release ID"),
    "JobHeldAdmin": (
        "held", ADMIN, u"被管理员或 Slurm 挂起", u"held by an admin or by Slurm", u"先查清原因 (slurmctld.log), 再 scontrol release ID",
        u"find out why (slurmctld.log), then scontrol release ID",
    ),
    "JobHoldMaxRequeue": (
        "held", ADMIN, u"重新排队次数过多而被挂起", u"held after too many requeues", u"查清每次失败的原因, 再 scontrol release ID",
        u"find out why each try failed, then scontrol release ID",
    ),
    "PartitionConfig": (
        "request-vs-partition", CHANGE, u"申请与分区的限制不符", u"the request does not go with the partition's limits",
        u"对照 scontrol show partition 修改申请或换分区", u"compare with scontrol show partition; change the request or the partition",
    ),
    "PartitionNodeLimit": (
        "request-vs-partition", CHANGE, u"节点数超出分区允许的范围 (或节点不可用)",
        u"more or fewer nodes than the partition allows (or has up)", u"修改 --nodes 或换分区", u"change --nodes or the partition",
    ),
    "PartitionTimeLimit": (
        "request-vs-partition", CHANGE, u"时间超过分区的 MaxTime", u"a longer time than the partition's MaxTime", u"缩短 --time 或换分区",
        u"shorten --time or change the partition",
    ),
    "MaxMemPerLimit": (
        "request-vs-partition", CHANGE, u"内存超过分区的上限", u"more memory than the partition allows", u"减小 --mem 或换分区",
        u"lower --mem or change the partition",
    ),
    "BadConstraints": (
        "request-vs-partition", CHANGE, u"没有节点满足所要求的条件", u"no node meets the constraints",
        u"检查 --constraint --gres --mem --cpus-per-task", u"check --constraint --gres --mem --cpus-per-task",
    ),
    "AccountNotAllowed": (
        "request-vs-partition", CHANGE, u"该分区不允许此账户", u"the account may not use the partition", u"换 --account 或分区",
        u"use another --account or partition",
    ),
    "QOSNotAllowed": (
        "request-vs-partition", CHANGE, u"该分区或账户不允许此 QOS", u"the QOS is not allowed there", u"换 --qos 或分区",
        u"use another --qos or partition",
    ),
    "InvalidAccount": (
        "access", CHANGE, u"账户无效", u"the account is not valid", u"sacctmgr show assoc user= 查看; 换 --account, 否则找管理员",
        u"see sacctmgr show assoc user=; use another --account, else ask an admin",
    ),
    "InvalidQOS": (
        "access", CHANGE, u"QOS 无效", u"the QOS is not valid", u"sacctmgr show assoc user= 查看; 换 --qos, 否则找管理员",
        u"see sacctmgr show assoc user=; use another --qos, else ask an admin",
    ),
    "PartitionDown": (
        "partition-state", ADMIN, u"分区已停用 (DOWN)", u"the partition is down", u"管理员: scontrol update partition=NAME state=UP",
        u"an admin: scontrol update partition=NAME state=UP",
    ),
    "PartitionInactive": (
        "partition-state", ADMIN, u"分区不接受运行 (INACTIVE)", u"the partition is inactive",
        u"管理员: scontrol update partition=NAME state=UP", u"an admin: scontrol update partition=NAME state=UP",
    ),
    "FrontEndDown": (
        "partition-state", ADMIN, u"前端节点不可用", u"no front end node is up", u"管理员检查前端节点",
        u"an admin looks at the front end",
    ),
    "NodeDown": ("nodes", ADMIN, u"所需节点故障", u"a node it needs is down", u"sinfo -R 查看原因", u"see sinfo -R"),
    "ReqNodeNotAvail": (
        "nodes", ADMIN, u"所要求的节点不可用", u"nodes it asks for are not available", u"sinfo -R 查看; 或去掉 -w, --exclude",
        u"see sinfo -R; or leave out -w, --exclude",
    ),
    "Reservation": (
        "reservation", WAIT, u"等待预留开始", u"it waits for its reservation", u"scontrol show reservation", u"scontrol show reservation",
    ),
    "ReservationDeleted": (
        "reservation", CHANGE, u"预留已被删除", u"its reservation was deleted", u"不带或换 --reservation 后 scontrol release",
        u"take --reservation away or change it, then scontrol release",
    ),
    "ReservationInvalid": (
        "reservation", CHANGE, u"预留无效", u"its reservation is not valid", u"换 --reservation", u"use another --reservation",
    ),
    "AccountingPolicy": (
        "limit-other", ADMIN, u"受记账策略限制", u"an accounting policy stands against it", u"管理员: sacctmgr show assoc, qos",
        u"an admin: sacctmgr show assoc, qos",
    ),
    "AssociationJobLimit": (
        "limit-assoc-max", WAIT, u"达到账户关联的作业数上限", u"the association's number of jobs is reached", u"等待其他作业结束",
        u"wait until other jobs end",
    ),
    "AssociationResourceLimit": (
        "limit-assoc-max", WAIT, u"达到账户关联的资源上限", u"the association's resources are used up", u"等待其他作业结束",
        u"wait until other jobs end",
    ),
    "AssociationTimeLimit": (
        "limit-assoc-max", ADMIN, u"账户关联的机时已用完", u"the association's time is used up", u"管理员: sacctmgr show assoc",
        u"an admin: sacctmgr show assoc",
    ),
    "QOSJobLimit": (
        "limit-qos-max", WAIT, u"达到 QOS 的作业数上限", u"the QOS's number of jobs is reached", u"等待其他作业结束",
        u"wait until other jobs end",
    ),
    "QOSResourceLimit": (
        "limit-qos-max", WAIT, u"达到 QOS 的资源上限", u"the QOS's resources are used up", u"等待其他作业结束",
        u"wait until other jobs end",
    ),
    "QOSTimeLimit": (
        "limit-qos-max", ADMIN, u"QOS 的机时已用完", u"the QOS's time is used up", u"管理员: sacctmgr show qos",
        u"an admin: sacctmgr show qos",
    ),
    "QOSUsageThreshold": (
        "limit-qos-max", WAIT, u"公平份额低于 QOS 的使用阈值", u"the fair share is below the QOS's threshold", u"等待份额恢复 (sshare)",
        u"wait until the share recovers (sshare)",
    ),
    "DeadLine": (
        "fail-job", CHANGE, u"无法在 --deadline 之前完成", u"--deadline cannot be kept", u"放宽 --deadline 或缩短 --time",
        u"a later --deadline or a shorter --time",
    ),
    "InactiveLimit": (
        "fail-job", CHANGE, u"超过 InactiveLimit 没有活动", u"no activity for longer than InactiveLimit", u"检查 salloc 会话",
        u"look at the salloc session",
    ),
    "NonZeroExitCode": (
        "fail-job", CHANGE, u"程序以非零退出码结束", u"the program ended with a non-zero exit status", u"查看退出码与输出",
        u"see the exit status and the output",
    ),
    "OutOfMemory": ("fail-job", CHANGE, u"内存超出申请", u"more memory than requested", u"增大 --mem", u"raise --mem"),
    "RaisedSignal": (
        "fail-job", CHANGE, u"程序被信号终止", u"the program was ended by a signal", u"查看信号与输出", u"see the signal and the output",
    ),
    "TimeLimit": (
        "fail-job", CHANGE, u"超过时间上限", u"it ran into its time limit", u"增大 --time 或设检查点",
        u"raise --time or write checkpoints",
    ),
    "BurstBufferOperation": (
        "fail-system", ADMIN, u"突发缓冲操作失败", u"a burst buffer operation failed", u"管理员查看 slurmctld.log",
        u"an admin reads slurmctld.log",
    ),
    "JobLaunchFailure": (
        "fail-system", ADMIN, u"作业在节点上启动失败", u"the job could not be launched on its node", u"管理员查看该节点的 slurmd.log",
        u"an admin reads slurmd.log of the batch host",
    ),
    "SystemFailure": (
        "fail-system", ADMIN, u"Slurm 系统错误", u"Slurm itself failed", u"管理员查看 slurmctld.log", u"an admin reads slurmctld.log",
    ),
    "BlockFreeAction": ("wait-resource", WAIT, u"等待节点块释放", u"it waits for a block to be freed", u"等待", u"wait"),
    "BlockMaxError": ("wait-resource", ADMIN, u"节点块错误过多", u"a block had too many errors", u"管理员检查", u"an admin looks"),
    "BurstBufferResources": (
        "wait-resource", WAIT, u"等待突发缓冲空间", u"it waits for burst buffer space", u"scontrol show burst", u"scontrol show burst",
    ),
    "BurstBufferStageIn": (
        "wait-resource", WAIT, u"正在导入数据", u"its data are being staged in", u"scontrol show burst", u"scontrol show burst",
    ),
    "Cleaning": (
        "wait-resource", WAIT, u"上一次运行仍在收尾", u"its last run is still being tidied up", u"等待; 若长期如此, epilog 可能卡住",
        u"wait; if it stays, an epilog hangs",
    ),
    "Constraints": (
        "wait-resource", CHANGE, u"等待满足条件的节点", u"no node that meets the constraints is there now", u"检查 --constraint, --extra",
        u"check --constraint, --extra",
    ),
    "FedJobLock": ("wait-resource", WAIT, u"等待联邦的锁", u"it waits for the federation's lock", u"等待", u"wait"),
    "JobArrayTaskLimit": (
        "wait-resource", OWN, u"达到作业数组自设的并发上限 (%N)", u"the array's own limit (%N) is reached",
        u"等待, 或 scontrol update jobid=ID ArrayTaskThrottle=N", u"wait, or scontrol update jobid=ID ArrayTaskThrottle=N",
    ),
    "Licenses": (
        "wait-resource", WAIT, u"等待许可证", u"it waits for a licence", u"scontrol show lic 查看总数与占用", u"see scontrol show lic",
    ),
    "MaxPoweredUpNodes": (
        "wait-resource", WAIT, u"开机节点数达到上限", u"no more nodes may be powered up", u"等待, 管理员可调 MaxPoweredUpNodes",
        u"wait; an admin may raise it",
    ),
    "MpiPortsBusy": ("wait-resource", WAIT, u"MPI 端口全部占用", u"all ports kept for MPI are in use", u"等待", u"wait"),
    "NvidiaImexChannels": ("wait-resource", WAIT, u"等待 IMEX 通道", u"it waits for an IMEX channel", u"等待", u"wait"),
    "PowerNotAvail": ("wait-resource", WAIT, u"电力上限已满", u"the power cap is reached", u"等待", u"wait"),
    "PowerReserved": ("wait-resource", WAIT, u"电力已被预留", u"the power is reserved", u"等待", u"wait"),
    "Prolog": (
        "wait-resource", WAIT, u"Prolog 仍在运行", u"its prolog still runs", u"等待; 超过 PrologTimeout 时找管理员",
        u"wait; past PrologTimeout ask an admin",
    ),
    "SchedDefer": ("wait-resource", WAIT, u"按配置推迟调度", u"the scheduler defers it as configured", u"等待", u"wait"),
}  # fmt: skip

# Limits by family, as Slurm spells them.
LIMITS = {
    "limit-assoc-group": """
        AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocGrpBilling AssocGrpBillingMinutes
        AssocGrpBillingRunMinutes AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpCpuLimit AssocGrpEnergy
        AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes
        AssocGrpJobsLimit AssocGrpLicense AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes AssocGrpMemLimit
        AssocGrpMemMinutes AssocGrpMemRunMinutes AssocGrpNodeLimit AssocGrpNodeMinutes AssocGrpNodeRunMinutes
        AssocGrpSubmitJobsLimit AssocGrpUnknown AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocGrpWallLimit
    """,
    "limit-assoc-max": """
        AssocMaxBBMinutesPerJob AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBillingMinutesPerJob AssocMaxBillingPerJob
        AssocMaxBillingPerNode AssocMaxCpuMinutesPerJobLimit AssocMaxCpuPerJobLimit AssocMaxCpuPerNode
        AssocMaxEnergyMinutesPerJob AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxGRESMinutesPerJob
        AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxJobsLimit AssocMaxLicenseMinutesPerJob AssocMaxLicensePerJob
        AssocMaxMemMinutesPerJob AssocMaxMemPerJob AssocMaxMemPerNode AssocMaxNodeMinutesPerJob AssocMaxNodePerJobLimit
        AssocMaxSubmitJobLimit AssocMaxUnknownMinutesPerJob AssocMaxUnknownPerJob AssocMaxUnknownPerNode
        AssocMaxWallDurationPerJobLimit AssociationJobLimit AssociationResourceLimit AssociationTimeLimit
    """,
    "limit-qos-group": """
        QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes
        QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpCpuLimit QOSGrpEnergy QOSGrpEnergyMinutes
        QOSGrpEnergyRunMinutes QOSGrpGRES QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSGrpJobsLimit QOSGrpLicense
        QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSGrpMemLimit QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes
        QOSGrpNodeLimit QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSGrpSubmitJobsLimit QOSGrpUnknown QOSGrpUnknownMinutes
        QOSGrpUnknownRunMinutes QOSGrpWallLimit
    """,
    "limit-qos-max": """
        QOSJobLimit QOSMaxBBPerJob QOSMaxBBPerNode QOSMaxBBPerUser QOSMaxBillingMinutesPerJob QOSMaxBillingPerJob
        QOSMaxBillingPerNode QOSMaxBillingPerUser QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit QOSMaxCpuPerNode
        QOSMaxCpuPerUserLimit QOSMaxEnergyMinutesPerJob QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser
        QOSMaxGRESMinutesPerJob QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser QOSMaxJobsPerUserLimit
        QOSMaxLicenseMinutesPerJob QOSMaxLicensePerJob QOSMaxLicensePerUser QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob
        QOSMaxMemoryPerNode QOSMaxMemoryPerUser QOSMaxNodeMinutesPerJob QOSMaxNodePerJobLimit QOSMaxNodePerUserLimit
        QOSMaxSubmitJobPerUserLimit QOSMaxUnknownMinutesPerJob QOSMaxUnknownPerJob QOSMaxUnknownPerNode
        QOSMaxUnknownPerUser QOSMaxWallDurationPerJobLimit QOSResourceLimit QOSTimeLimit QOSUsageThreshold
    """,
    "limit-qos-min": """
        QOSMinBB QOSMinBilling QOSMinCpuNotSatisfied QOSMinEnergy QOSMinGRES QOSMinLicense QOSMinMemory QOSMinNode
        QOSMinUnknown
    """,
    "limit-qos-per-account-user": """
        MaxBBPerAccount MaxBBRunMinsPerAccount MaxBBRunMinsPerUser MaxBillingPerAccount MaxBillingRunMinsPerAccount
        MaxBillingRunMinsPerUser MaxCpuPerAccount MaxCpuRunMinsPerAccount MaxCpuRunMinsPerUser MaxEnergyPerAccount
        MaxEnergyRunMinsPerAccount MaxEnergyRunMinsPerUser MaxGRESPerAccount MaxGRESRunMinsPerAccount
        MaxGRESRunMinsPerUser MaxJobsPerAccount MaxLicensePerAccount MaxLicenseRunMinsPerAccount
        MaxLicenseRunMinsPerUser MaxMemoryPerAccount MaxMemoryRunMinsPerAccount MaxMemoryRunMinsPerUser
        MaxNodePerAccount MaxNodeRunMinsPerAccount MaxNodeRunMinsPerUser MaxSubmitJobsPerAccount MaxUnknownPerAccount
        MaxUnknownRunMinsPerAccount MaxUnknownRunMinsPerUser
    """,
}

# Where a reason is not one of all releases: the first that has it, the last that had it.
SINCE = {
    (23, 2): "RaisedSignal ReservationInvalid",
    (23, 11): "Constraints",
    (24, 5): "MaxPoweredUpNodes MpiPortsBusy *RunMinsPerAccount *RunMinsPerUser",
    (25, 11): "NvidiaImexChannels",
}
UNTIL = {
    (22, 5): "BlockMaxError BlockFreeAction",
    (23, 11): "PowerNotAvail PowerReserved",
    (24, 11): "FrontEndDown",
}

_LIMIT = re.compile(
    r"^(QOS|Assoc|)(Grp|Max|Min)"
    r"(BB|Billing|CPU|Cpu|Energy|GRES|License|Memory|Mem|Node|Unknown|SubmitJobs?|Jobs|Wall(?:Duration)?)"
    r"(RunMinutes|RunMins|Minutes)?(?:Per(Job|Node|User|Account))?(?:Limit|NotSatisfied)?$"
)
_COUNTED = {
    "BB": ("bb", u"突发缓冲", u"burst buffer"), "Billing": ("billing", u"计费量", u"billing"), "CPU": ("cpu", u"CPU", u"CPUs"),
    "Cpu": ("cpu", u"CPU", u"CPUs"), "Energy": ("energy", u"能耗", u"energy"), "GRES": ("gres", u"GRES (如 GPU)", u"GRES (such as GPUs)"),
    "License": ("license", u"许可证", u"licences"), "Memory": ("mem", u"内存", u"memory"), "Mem": ("mem", u"内存", u"memory"),
    "Node": ("node", u"节点", u"nodes"), "Unknown": ("unknown", u"某种资源", u"some resource"),
    "SubmitJobs": ("submit", u"提交的作业数", u"submitted jobs"), "SubmitJob": ("submit", u"提交的作业数", u"submitted jobs"),
    "Jobs": ("jobs", u"运行的作业数", u"running jobs"), "Wall": ("wall", u"运行时间", u"wall time"),
    "WallDuration": ("wall", u"运行时间", u"wall time"),
}  # fmt: skip
_FOR = {
    "Job": (u"每个作业", u"for each job"), "Node": (u"每个节点", u"on each node"), "User": (u"每个用户", u"for each user"),
    "Account": (u"每个账户", u"for each account"), "": (u"", u""),
}  # fmt: skip
_OVER = {
    "": (u"", u""),
    "minutes": (u"累计分钟数", u" minutes in all"),
    "run_minutes": (u"运行中作业的剩余分钟数", u" minutes of running jobs"),
}
_SCOPES = {"qos": (u"QOS", u"the QOS"), "assoc": (u"账户关联", u"the association")}

# What squeue prints instead of a name: (pattern, class, Chinese, English, next step in Chinese, in English)
SENTENCES = [
    (r"launch failed requeued held|launch failure limit exceeded requeued held", ADMIN, u"启动失败, 重新排队并被挂起",
     u"its launch failed, so it was put back and held", u"先查批处理节点 (BatchHost) 的 prolog 与 slurmd.log, 修好后才 scontrol release",
     u"look at the batch host first (prolog, slurmd.log); scontrol release only when it is mended"),
    (r"user env retrieval failed requeued held", ADMIN, u"节点上无法取得用户环境, 作业被挂起",
     u"the user's environment could not be read on the node", u"在该节点检查 su - USER 是否很慢或失败, 再 scontrol release",
     u"see on the node whether su - USER is slow or fails, then scontrol release"),
    (r"job requeued in held state", OWN, u"重新排队并被挂起", u"put back into the queue and held", u"scontrol release ID",
     u"scontrol release ID"),
    (r"ReqNodeNotAvail.*[Mm]aintenance|[Rr]eserved for maintenance", WAIT, u"节点预留给维护", u"its nodes are reserved for maintenance",
     u"scontrol show reservation 查看维护时间; 缩短 --time 可在维护前完成",
     u"see scontrol show reservation; with a shorter --time it may end before"),
    (r"ReqNodeNotAvail, May be reserved for other job", WAIT, u"节点可能留给其他作业", u"its nodes may be kept for another job", u"等待",
     u"wait"),
    (r"ReqNodeNotAvail, UnavailableNodes", ADMIN, u"所需节点不可用", u"nodes it needs are not available", u"sinfo -R 查看这些节点的原因",
     u"see sinfo -R for these nodes"),
    (r"Nodes required for job are DOWN, DRAINED or reserved", ADMIN, u"所需节点故障, 已隔离或被更高优先级的分区保留",
     u"nodes it needs are down, drained or kept for partitions of higher priority", u"sinfo -R 查看", u"see sinfo -R"),
    (r"uid \d+ not in group permitted to use this partition", CHANGE, u"用户组不允许使用此分区",
     u"the user's groups may not use the partition", u"换分区, 或请管理员加入用户组",
     u"use another partition, or ask an admin for the group"),
    (r"Reservation \S+ was deleted", CHANGE, u"预留已被删除", u"its reservation was deleted",
     u"不带或换 --reservation 后 scontrol release", u"take --reservation away or change it, then scontrol release"),
    (r"Job is at or exceeds .*(limit|minutes)", WAIT, u"达到账户关联或 QOS 的上限", u"a limit of the association or QOS is reached",
     u"sacctmgr show assoc, qos 对照", u"compare with sacctmgr show assoc, qos"),
]  # fmt: skip
_SENTENCES = [(re.compile(row[0], re.IGNORECASE),) + row[1:] for row in SENTENCES]


def known(name):
    """Whether this is a reason of a release that we know."""
    return name in REASONS or name in _FAMILY


def in_release(name, release):
    """Whether a release, such as (24, 5), has this reason."""
    return known(name) and not any(
        (release < edge if since else release > edge) and _listed(name, names)
        for since, table in ((True, SINCE), (False, UNTIL))
        for edge, names in table.items()
    )


def _listed(name, names):
    return any(name.endswith(one[1:]) if one[0] == "*" else name == one for one in names.split())


def limit(name):
    """What a limit counts: {scope, kind, counted, over, per}, None of what is no limit.

    ``over`` is "" for what is in use at once, "run_minutes" for what running jobs may still use, "minutes" for a budget.
    """
    match = _LIMIT.match(name)
    if not match:
        return None
    scope, kind, counted, over, per = match.groups()
    if not scope and per not in ("User", "Account"):
        return None
    return {
        "scope": "assoc" if scope == "Assoc" else "qos",
        "kind": kind.lower(),
        "counted": _COUNTED[counted][0],
        "over": {"RunMinutes": "run_minutes", "RunMins": "run_minutes", "Minutes": "minutes", None: ""}[over],
        "per": per or ("Job" if kind == "Max" and counted.startswith("Wall") else ""),
    }


def look_up(text):
    """What a reason means, whatever it is: {reason, known, family, class, who, zh, en, next_zh, next_en}."""
    text = text.strip().strip("()") or "None"
    for row in _SENTENCES:
        if row[0].search(text.replace("_", " ")):
            return _entry(text, True, "sentence", *row[1:])
    # a sentence may follow a name: "QOSMaxCpuPerUserLimit (...)", "RaisedSignal:9(Killed)"
    name = re.split(r"[\s,:(]", text, maxsplit=1)[0]
    if name in REASONS:
        return _entry(text, True, *REASONS[name])
    if name in _FAMILY or limit(name):
        return _entry(text, name in _FAMILY, _FAMILY.get(name) or _guess(name), *_of_limit(name))
    return _entry(
        text, False, _guess(name), ADMIN, u"未知的原因", u"a reason that this table does not know",
        u"查看 Slurm 文档 job_reason_codes, 或询问管理员", u"see Slurm's job_reason_codes, or ask an admin",
    )  # fmt: skip


def _entry(text, is_known, family, kind, zh, en, next_zh, next_en):
    return {
        "reason": text, "known": is_known, "family": family, "class": kind, "who": WHO[kind],
        "zh": zh, "en": en, "next_zh": next_zh, "next_en": next_en,
    }  # fmt: skip


def _guess(name):
    """The family of a reason that nobody told us of."""
    for start, family in (("QOS", "limit-qos"), ("Assoc", "limit-assoc"), ("Max", "limit-qos-per-account-user")):
        if name.startswith(start):
            return family
    return "limit-other" if name.endswith("Limit") else "unknown"


def _of_limit(name):
    """(class, Chinese, English, next step in Chinese, in English) of a limit."""
    said = limit(name)
    counted = next(row for key, row in _COUNTED.items() if row[0] == said["counted"] and key in name)
    scope, per = _SCOPES[said["scope"]], _FOR[said["per"]]
    over_zh, over_en = _OVER[said["over"]]
    bound_zh, bound_en = (u"低于下限", u"below the least") if said["kind"] == "min" else (u"达到上限", u"at the most")
    zh = u"%s: %s%s%s%s" % (scope[0], per[0], counted[1], over_zh, bound_zh)
    en = u"%s%s %s that %s allows%s" % (counted[2], over_en, bound_en, scope[1], u" " + per[1] if per[1] else u"")
    show = u"sacctmgr show %s" % ("qos" if said["scope"] == "qos" else "assoc tree")
    if said["kind"] == "min":
        return CHANGE, zh, en, u"增大申请, 或换 QOS (%s)" % show, u"ask for more, or use another QOS (%s)" % show
    if said["per"] in ("Job", "Node"):
        return CHANGE, zh, en, u"减小申请 (%s)" % show, u"ask for less (%s)" % show
    if said["over"] == "minutes" or said["counted"] == "wall":
        return ADMIN, zh, en, u"机时预算已用完, 管理员可增加 (%s)" % show, u"the budget is used up; an admin may raise it (%s)" % show
    return WAIT, zh, en, u"等待同组作业结束 (%s)" % show, u"wait until jobs that count against it end (%s)" % show


_FAMILY = {name: family for family, names in LIMITS.items() for name in names.split()}
