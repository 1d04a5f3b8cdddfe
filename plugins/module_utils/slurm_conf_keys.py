# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of slurm.conf, release by release: which there are, what their values look like, what a change of them asks for. Pure.

Read off the option tables of ``src/common/read_config.c`` at the last point release of each release from 20.11 to 26.05,
and off the notes in slurm.conf(5) of the same releases.

A table row is a *timeline*: a word for the oldest release, then ``RELEASE:word`` wherever it changes. The words:

``string uint16 uint32 uint64 boolean``
    a global key with one value; the last line wins
``list``
    a global key whose lines add up
``record``
    the first word of a line that describes a thing (a node, a partition), with keys of its own
``ignored``
    still understood, but without effect
``refused``
    understood only to say that it has been removed: the daemons do not start
``-``
    no such key
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import difflib

OLDEST, NEWEST = (20, 11), (26, 5)
NUMBERS = {"uint16": (1 << 16) - 1, "uint32": (1 << 32) - 1, "uint64": (1 << 64) - 1}
PLAIN = ("string", "boolean", "list") + tuple(NUMBERS)

_GLOBAL = (
    ("string", """
AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost AccountingStorageParameters
AccountingStoragePass AccountingStorageTRES AccountingStorageType AcctGatherEnergyType AcctGatherFilesystemType
AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherProfileType AuthAltParameters AuthAltTypes AuthInfo AuthType
BackupAddr BackupController BurstBufferParameters BurstBufferType CliFilterPlugins ClusterName CommunicationParameters ControlAddr
ControlMachine CpuFreqDef CpuFreqGovernors CredType CryptoType DebugFlags DependencyParameters EnforcePartLimits
FederationParameters GpuFreqDef GresTypes HealthCheckNodeState HealthCheckProgram InteractiveStepOptions JobAcctGatherFrequency
JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompType JobCompUser JobContainerType
JobSubmitPlugins LaunchParameters LaunchType Licenses LogTimeFormat MailDomain MailProg MCSParameters MCSPlugin MpiDefault MpiParams
NodeFeaturesPlugins PluginDir PlugStackConfig PreemptExemptTime PreemptMode PreemptType PrEpParameters PrEpPlugins
PriorityCalcPeriod PriorityDecayHalfLife PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters
PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod PriorityWeightTRES PrivateData ProctrackType PrologFlags
PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram
ResumeProgram ResvEpilog ResvProlog RoutePlugin SbcastParameters SchedulerParameters SchedulerType ScronParameters SelectType
SelectTypeParameters SlurmctldAddr SlurmctldDebug SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort
SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile
SlurmdSpoolDir SlurmdSyslogDebug SlurmdUser SlurmSchedLogFile SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
SuspendExcNodes SuspendExcParts SuspendProgram SuspendTime SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TmpFS
TopologyParam TopologyPlugin UnkillableStepProgram X11Parameters"""),
    ("uint16", """
AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout FairShareDampeningFactor GroupUpdateForce
GroupUpdateTime HealthCheckInterval InactiveLimit JobFileAppend JobRequeue KillOnBadExit KillWait MaxTasksPerNode MessageTimeout
OverTimeLimit PrologEpilogTimeout PropagatePrioProcess ResumeRate ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice
SlurmctldTimeout SlurmdTimeout SlurmSchedLogLevel SuspendRate SuspendTimeout TCPTimeout TreeWidth UnkillableStepTimeout VSizeFactor
WaitTime"""),
    ("uint32", """
EpilogMsgTime FirstJobId JobCompPort MaxArraySize MaxDBDMsgs MaxJobCount MaxJobId MaxStepCount MinJobAge PriorityWeightAge
PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS SlurmdPort"""),
    ("uint64", "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
    ("boolean", "AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM"),
    ("record", "DownNodes NodeName NodeSet PartitionName SlurmctldHost"),
    ("ignored", "FastSchedule"),
    ("refused", "SallocDefaultCommand"),
)

_GLOBAL_TIMELINES = """
AccountingStorageLoc refused 25.11:-
AccountingStorageUser string 25.11:ignored
AccountingStoreFlags - 21.08:string
AccountingStoreJobComment boolean 21.08:refused
BcastExclude - 21.08:string
BcastParameters - 21.08:string
CacheGroups ignored 21.08:-
CertgenParameters - 25.05:string
CertgenType - 25.05:string
CertmgrParameters - 24.11:string
CertmgrType - 24.11:string
CheckpointType ignored 21.08:-
CliFilterParameters - 25.11:string
CoreSpecPlugin string 24.05:ignored
DataParserParameters - 24.11:string
DefaultStorageHost string 21.08:-
DefaultStorageLoc string 21.08:-
DefaultStoragePass string 21.08:-
DefaultStoragePort uint32 21.08:-
DefaultStorageType string 21.08:-
DefaultStorageUser string 21.08:-
Epilog string 24.05:list
EpilogSlurmctld string 24.05:list
EpilogTimeout - 25.05:uint16
ExtSensorsFreq uint16 23.11:ignored
ExtSensorsType string 23.11:ignored
FrontendName record 25.05:-
GetEnvTimeout uint16 25.05:ignored
HashPlugin - 24.05:string
HealthCheckTimeout - 26.05:uint16
HttpParserType - 25.11:string
JobCheckpointDir ignored 21.08:-
JobCompPassScript - 25.11:string
JobCredentialPrivateKey string 23.11:ignored
JobCredentialPublicCertificate string 23.11:ignored
KeepAliveTime uint16 22.05:uint32
LicenseParameters - 26.05:string
MaxBatchRequeue - 23.02:uint32
MaxNodeCount - 22.05:uint32
MemLimitEnforce refused 21.08:-
MetricsAuthUsers - 26.05:string
MetricsParameters - 26.05:string
MetricsType - 25.11:string
NamespaceType - 25.11:string
PowerAction - 26.05:record
PowerParameters string 24.05:ignored
PowerPlugin string 24.05:ignored
PreemptParameters - 23.02:string
Prolog string 24.05:list
PrologSlurmctld string 24.05:list
PrologTimeout - 25.05:uint16
SchedulerAuth ignored 24.05:-
SchedulerPort ignored 21.08:-
SchedulerRootFilter ignored 21.08:-
SlurmctldHttpAuthParameters - 26.05:string
SlurmctldPlugstack string 23.02:-
SlurmdHttpAuthParameters - 26.05:string
SuspendExcStates - 23.02:string
SwitchParameters - 21.08:string
TLSParameters - 24.05:string
TLSType - 24.05:string
UrlParserType - 25.11:string
"""

_RECORDS = {
    "NodeName": (
        (
            ("string", "BcastAddr CpuBind CPUSpecList Feature Features Gres NodeAddr NodeHostname Port Reason State TRESWeights"),
            ("uint16", "Boards CoreSpecCount CoresPerSocket CPUs Procs Sockets SocketsPerBoard ThreadsPerCore"),
            ("uint64", "MemSpecLimit RealMemory"),
            ("uint32", "TmpDisk Weight"),
        ),
        """
GresConf - 25.11:string
Parameters - 25.11:string
RestrictedCoresPerGPU - 24.05:uint16
SuspendTime - 26.05:string
Topology - 25.05:string
""",
    ),
    "PartitionName": (
        (
            ("string", """
AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind DefaultTime DenyAccounts DenyQos MaxTime Nodes OverSubscribe
OverTimeLimit PreemptMode QOS SelectTypeParameters Shared State TRESBillingWeights"""),
            ("boolean", "Default DisableRootJobs ExclusiveUser Hidden LLN ReqResv RootOnly"),
            ("uint64", "DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"),
            ("uint32", "GraceTime MaxCPUsPerNode MaxNodes MinNodes"),
            ("uint16", "Priority PriorityJobFactor PriorityTier"),
        ),
        """
Exclusive - 26.05:string
ExclusiveTopo - 24.05:boolean
MaxCPUsPerSocket - 23.02:uint32
PowerDownOnIdle - 23.02:boolean
ResumeTimeout - 21.08:uint16
SuspendTime - 21.08:uint32 22.05:string
SuspendTimeout - 21.08:uint16
Topology - 25.05:string
""",
    ),
    "FrontendName": (
        (("string", "AllowGroups AllowUsers DenyGroups DenyUsers FrontendAddr Reason State"), ("uint16", "Port")),
        "",
    ),
    "DownNodes": ((("string", "Reason State"),), ""),
    "NodeSet": ((("string", "Feature Nodes"),), ""),
    "PowerAction": ((("string", "Location Program"),), ""),
    "SlurmctldHost": ((), ""),
}

# Never shown, neither in the file's text nor as a value. StoragePass belongs to slurmdbd.conf, which may be pasted here.
SECRETS = (
    "AccountingStoragePass",
    "AuthAltParameters",
    "AuthInfo",
    "DefaultStoragePass",
    "JobCompPass",
    "SlurmctldHttpAuthParameters",
    "SlurmdHttpAuthParameters",
    "StoragePass",
)

# Units of numbers, to say what 2G or 5m would be.
MEGABYTES = ("DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "MaxMemPerCPU", "MaxMemPerNode")
MINUTES = ("OverTimeLimit", "ResvOverRun")

NO_NOTE = "slurm.conf(5): no note, so a reconfigure is enough"
_NEW_PROCESSES = "scontrol(1) from 23.11: reconfigure starts new processes"
_CLASSES = (
    (NO_NOTE, "reconfigure", """
BatchStartTimeout CompleteWait DebugFlags DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs
EnforcePartLimits Epilog EpilogSlurmctld GroupUpdateForce GroupUpdateTime HealthCheckInterval HealthCheckNodeState
HealthCheckProgram HealthCheckTimeout InactiveLimit JobAcctGatherFrequency JobFileAppend JobRequeue KillOnBadExit KillWait
LaunchParameters MailDomain MailProg MaxMemPerCPU MaxMemPerNode MessageTimeout MinJobAge OverTimeLimit PriorityDecayHalfLife
PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
RebootProgram RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun
ResvProlog ReturnToService SchedulerParameters SchedulerTimeSlice SlurmctldDebug SlurmctldLogFile SlurmctldSyslogDebug
SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdSyslogDebug SlurmdTimeout SrunEpilog SrunProlog SuspendExcNodes SuspendExcParts
SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout TaskEpilog TaskProlog UnkillableStepProgram
UnkillableStepTimeout WaitTime"""),
    ("slurm.conf(5): needs a restart of slurmctld", "restart_slurmctld 23.11:reconfigure", """
AccountingStorageEnforce CredType MaxJobCount MaxNodeCount SchedulerType SelectTypeParameters SlurmctldParameters"""),
    ("its plugin is loaded when slurmctld starts", "restart_slurmctld 23.11:reconfigure", """
AccountingStorageType BurstBufferType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPort JobCompType JobCompUser
JobSubmitPlugins MCSPlugin PreemptType PriorityType TopologyPlugin"""),
    ("slurm.conf(5): needs a restart of slurmctld and slurmd", "restart_slurmd 23.11:reconfigure", """
CoreSpecPlugin GresTypes JobContainerType PluginDir ProctrackType"""),
    ("its plugin is loaded when slurmd starts", "restart_slurmd 23.11:reconfigure", """
AcctGatherEnergyType AcctGatherFilesystemType AcctGatherInterconnectType AcctGatherProfileType TaskPlugin TaskPluginParam"""),
    ("slurm.conf(5) to 22.05: only while no step runs", "restart_without_steps 23.02:restart_slurmd 23.11:reconfigure", """
JobAcctGatherType"""),
    ("slurmd finds its running steps in it", "restart_without_steps", "SlurmdSpoolDir"),
    ("a reconfigure changes neither ports, users, pid files nor authentication", "restart_slurmd", """
AuthAltParameters AuthAltTypes AuthInfo SlurmctldPidFile SlurmctldPort SlurmdPidFile SlurmdPort SlurmdUser SlurmUser"""),
    ("slurm.conf(5): every daemon and command has to be stopped first", "refused", "AuthType"),
    ("slurmctld does not start when the name differs from the one in StateSaveLocation", "refused", "ClusterName"),
    ("slurm.conf(5): all job information is lost", "refused", "SelectType SwitchType"),
    ("the queue stays behind in the old directory", "refused", "StateSaveLocation"),
)


def _timeline(text):
    """``string 24.05:list`` as [((20, 11), "string"), ((24, 5), "list")]."""
    steps = []
    for word in text.split():
        start, _colon, value = word.rpartition(":")
        release = tuple(int(part) for part in start.split(".")) if start else OLDEST
        steps.append((release, value))
    return steps


def _at(steps, release):
    """What a timeline says at a release; a release before the oldest counts as the oldest."""
    found = steps[0][1]
    for start, value in steps:
        if tuple(release) >= start:
            found = value
    return found


def _table(groups, timelines):
    """{lower-case name: (name as Slurm spells it, timeline)}."""
    table = {}
    for kind, names in groups:
        for name in names.split():
            table[name.lower()] = (name, _timeline(kind))
    for row in timelines.split("\n"):
        if row:
            name, text = row.split(" ", 1)
            table[name.lower()] = (name, _timeline(text))
    return table


_KEYS = _table(_GLOBAL, _GLOBAL_TIMELINES)
_RECORD_KEYS = {name.lower(): _table(*tables) for name, tables in _RECORDS.items()}
_CHANGES = {name.lower(): (source, _timeline(text)) for source, text, names in _CLASSES for name in names.split()}


def canonical(key):
    """The key as Slurm spells it; unknown ones as they are."""
    return _KEYS[key.lower()][0] if key.lower() in _KEYS else key


def kind(key, release):
    """What the key is at a release, see the top of this file."""
    known = _KEYS.get(key.lower())
    return _at(known[1], release) if known else "-"


def record_kind(record, key, release):
    """What a key is on the lines of a record."""
    known = _RECORD_KEYS[record.lower()].get(key.lower())
    return _at(known[1], release) if known else "-"


def is_record(key):
    """True for the first word of a line that describes a thing, in whatever release."""
    return key.lower() in _RECORD_KEYS


def is_secret(key):
    """True when the value must never be shown."""
    return key.lower() in [name.lower() for name in SECRETS]


def known_from(key):
    """The releases at which the key came and went, as a sentence; empty when no release knows it."""
    known = _KEYS.get(key.lower())
    if not known:
        return ""
    steps = [step for step in known[1] if step != (OLDEST, "-")]
    if steps[0][0] != OLDEST:
        return "Slurm knows it from %d.%02d on" % steps[0][0]
    gone = [start for start, value in steps if value == "-"]
    return "Slurm dropped it in %d.%02d" % gone[0] if gone else ""


def similar(key, release, record=None):
    """The known key that was probably meant, None when there is none."""
    table = _RECORD_KEYS[record.lower()] if record else _KEYS
    names = [name for name in table if _at(table[name][1], release) in PLAIN + ("record",)]
    near = difflib.get_close_matches(key.lower(), sorted(names), n=1, cutoff=0.75)
    return table[near[0]][0] if near else None


def change_class(key, release):
    """What a change of the key asks for: (class, where that is written).

    From 23.11 on ``scontrol reconfigure`` replaces the daemons by new processes, so it takes in nearly everything. Before,
    a key that nothing is known of gets a restart of slurmctld (and the reconfigure that every change gets), which costs a
    moment of scheduling and no job.
    """
    if key.lower() in _CHANGES:
        source, steps = _CHANGES[key.lower()]
        name = _at(steps, release)
        return name, _NEW_PROCESSES if name == "reconfigure" and len(steps) > 1 else source
    if tuple(release) >= (23, 11):
        return "reconfigure", _NEW_PROCESSES
    return "restart_slurmctld", "not known to need less"
