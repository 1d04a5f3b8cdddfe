# -*- coding: utf-8 -*-
# Copyright: hpcguard contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of unit files by the systemd that first knows them, and a lint of units. Pure.

A key that systemd does not know is ignored with a warning, so the setting is silently not in force.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from . import systemd_unit

# {section: {release: keys}}: what the parser of each release takes, those that it takes for compatibility only
# included. 219 stands for 219 and older. The manual pages are less exact: several keys that share a paragraph share one
# "Added in version". Vendors carry some keys back (EL7's 219 knows TasksMax); what is written here holds everywhere.
_SINCE = {
    "Unit": {
        219: (
            "After AllowIsolate Before BindTo BindsTo ConditionACPower ConditionArchitecture ConditionCapability "
            "ConditionDirectoryNotEmpty ConditionFileIsExecutable ConditionFileNotEmpty ConditionFirstBoot "
            "ConditionHost ConditionKernelCommandLine ConditionNeedsUpdate ConditionPathExists "
            "ConditionPathExistsGlob ConditionPathIsDirectory ConditionPathIsMountPoint ConditionPathIsReadWrite "
            "ConditionPathIsSymbolicLink ConditionSecurity ConditionVirtualization Conflicts DefaultDependencies "
            "Description Documentation IgnoreOnIsolate IgnoreOnSnapshot JobTimeoutAction JobTimeoutRebootArgument "
            "JobTimeoutSec JoinsNamespaceOf OnFailure OnFailureIsolate OnFailureJobMode PartOf "
            "PropagateReloadFrom PropagateReloadTo PropagatesReloadTo RefuseManualStart RefuseManualStop "
            "ReloadPropagatedFrom Requires RequiresMountsFor RequiresOverridable Requisite RequisiteOverridable "
            "SourcePath StopWhenUnneeded Wants"
        ),
        229: "RebootArgument StartLimitAction StartLimitBurst StartLimitInterval",
        230: "StartLimitIntervalSec",
        234: "ConditionGroup ConditionUser JobRunningTimeoutSec",
        236: "CollectMode FailureAction SuccessAction",
        237: "ConditionControlGroupController ConditionKernelVersion",
        240: "FailureActionExitStatus SuccessActionExitStatus",
        244: "ConditionCPUs ConditionMemory",
        246: "ConditionEnvironment ConditionPathIsEncrypted",
        248: "ConditionCPUFeature",
        249: (
            "ConditionFirmware ConditionOSRelease OnSuccess OnSuccessJobMode PropagatesStopTo StopPropagatedFrom "
            "Upholds"
        ),
        250: "ConditionCPUPressure ConditionIOPressure ConditionMemoryPressure",
        252: "ConditionCredential",
        255: "SurviveFinalKillSignal",
        256: "WantsMountsFor",
        258: "ConditionKernelModuleLoaded ConditionVersion",
        260: "ConditionPathIsSocket",
        261: "ConditionFraction ConditionMachineTag",
    },
    "Service": {
        219: (
            "AppArmorProfile BlockIOAccounting BlockIODeviceWeight BlockIOReadBandwidth BlockIOWeight "
            "BlockIOWriteBandwidth BusName BusPolicy CPUAccounting CPUAffinity CPUQuota CPUSchedulingPolicy "
            "CPUSchedulingPriority CPUSchedulingResetOnFork CPUShares Capabilities CapabilityBoundingSet Delegate "
            "DeviceAllow DevicePolicy Environment EnvironmentFile ExecReload ExecStart ExecStartPost ExecStartPre "
            "ExecStop ExecStopPost FailureAction FileDescriptorStoreMax Group GuessMainPID IOSchedulingClass "
            "IOSchedulingPriority IgnoreSIGPIPE InaccessibleDirectories KillMode KillSignal LimitAS LimitCORE "
            "LimitCPU LimitDATA LimitFSIZE LimitLOCKS LimitMEMLOCK LimitMSGQUEUE LimitNICE LimitNOFILE LimitNPROC "
            "LimitRSS LimitRTPRIO LimitRTTIME LimitSIGPENDING LimitSTACK MemoryAccounting MemoryLimit MountFlags "
            "Nice NoNewPrivileges NonBlocking NotifyAccess OOMScoreAdjust PAMName PIDFile PermissionsStartOnly "
            "Personality PrivateDevices PrivateNetwork PrivateTmp ProtectHome ProtectSystem ReadOnlyDirectories "
            "ReadWriteDirectories RebootArgument RemainAfterExit Restart RestartForceExitStatus "
            "RestartPreventExitStatus RestartSec RestrictAddressFamilies RootDirectory RootDirectoryStartOnly "
            "RuntimeDirectory RuntimeDirectoryMode SELinuxContext SecureBits SendSIGHUP SendSIGKILL Slice "
            "SmackProcessLabel Sockets StandardError StandardInput StandardOutput StartLimitAction "
            "StartLimitBurst StartLimitInterval StartupBlockIOWeight StartupCPUShares SuccessExitStatus "
            "SupplementaryGroups SysVStartPriority SyslogFacility SyslogIdentifier SyslogLevel SyslogLevelPrefix "
            "SystemCallArchitectures SystemCallErrorNumber SystemCallFilter TTYPath TTYReset TTYVHangup "
            "TTYVTDisallocate TimeoutSec TimeoutStartSec TimeoutStopSec TimerSlackNSec Type UMask User "
            "UtmpIdentifier WatchdogSec WorkingDirectory"
        ),
        225: "UtmpMode",
        227: "NetClass TasksAccounting TasksMax USBFunctionDescriptors USBFunctionStrings",
        228: "PassEnvironment",
        229: "AmbientCapabilities RuntimeMaxSec",
        230: (
            "IOAccounting IODeviceWeight IOReadBandwidthMax IOReadIOPSMax IOWeight IOWriteBandwidthMax "
            "IOWriteIOPSMax StartupIOWeight"
        ),
        231: (
            "InaccessiblePaths MemoryDenyWriteExecute MemoryHigh MemoryLow MemoryMax ReadOnlyPaths ReadWritePaths "
            "RestrictRealtime"
        ),
        232: (
            "CPUWeight DynamicUser MemorySwapMax PrivateUsers ProtectControlGroups ProtectKernelModules "
            "ProtectKernelTunables StartupCPUWeight"
        ),
        233: "BindPaths BindReadOnlyPaths MountAPIVFS RestrictNamespaces RootImage",
        235: (
            "CacheDirectory CacheDirectoryMode ConfigurationDirectory ConfigurationDirectoryMode IPAccounting "
            "IPAddressAllow IPAddressDeny KeyringMode LockPersonality LogsDirectory LogsDirectoryMode "
            "RuntimeDirectoryPreserve StateDirectory StateDirectoryMode UnsetEnvironment"
        ),
        236: "LogExtraFields LogLevelMax RemoveIPC StandardInputData StandardInputText",
        238: "TemporaryFileSystem",
        239: "PrivateMounts",
        240: (
            "DisableControllers FinalKillSignal IODeviceLatencyTargetSec LogRateLimitBurst "
            "LogRateLimitIntervalSec MemoryMin WatchdogSignal"
        ),
        242: "CPUQuotaPeriodSec NetworkNamespacePath ProtectHostname RestrictSUIDSGID",
        243: (
            "DefaultMemoryLow DefaultMemoryMin ExecCondition IPEgressFilterPath IPIngressFilterPath NUMAMask "
            "NUMAPolicy OOMPolicy TimeoutAbortSec"
        ),
        244: "AllowedCPUs AllowedMemoryNodes ProtectKernelLogs RestartKillSignal TimeoutCleanSec",
        245: "LogNamespace ProtectClock",
        246: "CoredumpFilter RootHash RootHashSignature RootVerity TimeoutStartFailureMode TimeoutStopFailureMode",
        247: (
            "LoadCredential ManagedOOMMemoryPressure ManagedOOMSwap MountImages ProcSubset ProtectProc "
            "RootImageOptions SetCredential SystemCallLog"
        ),
        248: (
            "ExecPaths ExtensionImages IPCNamespacePath ManagedOOMMemoryPressureLimit ManagedOOMPreference "
            "NoExecPaths PrivateIPC"
        ),
        249: "BPFProgram SocketBindAllow SocketBindDeny",
        250: (
            "ExecSearchPath ExitType LoadCredentialEncrypted RestrictFileSystems RestrictNetworkInterfaces "
            "RuntimeRandomizedExtraSec SetCredentialEncrypted StartupAllowedCPUs StartupAllowedMemoryNodes "
            "TTYColumns TTYRows"
        ),
        251: "ExtensionDirectories",
        253: "LogFilterPatterns MemoryZSwapMax OpenFile ReloadSignal",
        254: (
            "DefaultStartupMemoryLow DelegateSubgroup ExtensionImagePolicy FileDescriptorStorePreserve "
            "ImportCredential MemoryKSM MemoryPressureThresholdSec MemoryPressureWatch MountImagePolicy "
            "RestartMaxDelaySec RestartMode RestartSteps RootEphemeral RootImagePolicy StartupMemoryHigh "
            "StartupMemoryLow StartupMemoryMax StartupMemorySwapMax StartupMemoryZSwapMax"
        ),
        255: "CoredumpReceive NFTSet SetLoginEnvironment",
        256: "MemoryZSwapWriteback",
        257: "BindLogSockets ManagedOOMMemoryPressureDurationSec PrivatePIDs",
        258: (
            "BPFDelegateAttachments BPFDelegateCommands BPFDelegateMaps BPFDelegatePrograms "
            "CacheDirectoryAccounting CacheDirectoryQuota DelegateNamespaces LogsDirectoryAccounting "
            "LogsDirectoryQuota PrivateBPF StateDirectoryAccounting StateDirectoryQuota"
        ),
        259: "ExecReloadPost UserNamespacePath",
        260: "BindNetworkInterface MemoryTHP RefreshOnReload RootMStack",
        261: "CPUPressureThresholdSec CPUPressureWatch CPUSetPartition IOPressureThresholdSec IOPressureWatch OOMRules",
        262: "LUOSession RestartRandomizedDelaySec",
    },
    "Timer": {
        219: (
            "AccuracySec OnActiveSec OnBootSec OnCalendar OnStartupSec OnUnitActiveSec OnUnitInactiveSec "
            "Persistent Unit WakeSystem"
        ),
        228: "RemainAfterElapse",
        229: "RandomizedDelaySec",
        242: "OnClockChange OnTimezoneChange",
        247: "FixedRandomDelay",
        257: "DeferReactivation",
        258: "RandomizedOffsetSec",
    },
    "Install": {
        219: "Alias Also DefaultInstance RequiredBy WantedBy",
        254: "UpheldBy",
    },
}

OLDEST = 219

KNOWN_SINCE = {
    (section, key): release
    for section, releases in _SINCE.items()
    for release, keys in releases.items()
    for key in keys.split()
}
# Every condition is there as an assertion too.
KNOWN_SINCE.update(
    {
        (section, key.replace("Condition", "Assert", 1)): release
        for (section, key), release in KNOWN_SINCE.items()
        if key.startswith("Condition")
    }
)

# What makes a timer elapse the first time, and what makes it elapse again.
_BEGINS = ("OnBootSec", "OnActiveSec", "OnStartupSec", "OnCalendar")
_REPEATS = ("OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar")


def known(section, key, release):
    """True when systemd of this release knows the key. Other sections than those in the table are not judged."""
    if section not in _SINCE or key.startswith("X-"):
        return True
    return KNOWN_SINCE.get((section, key), release + 1) <= max(release, OLDEST)


def unknown_keys(text, release):
    """Lines of a unit file with a key that systemd of this release does not know.

    :returns: list of (line number, section, key, release that knows it first or None)
    """
    return [
        (number, section, key, KNOWN_SINCE.get((section, key)))
        for number, section, key, _value in systemd_unit.numbered_entries(text)
        if not known(section, key, release)
    ]


def key_problems(name, text, release):
    """One sentence a line of a unit file that systemd of this release would ignore."""
    return [
        "%s, line %d: systemd %d does not know %s= in [%s]%s"
        % (name, number, release, key, section, ", it came with %d" % since if since else "")
        for number, section, key, since in unknown_keys(text, release)
    ]


def timer_problems(units, least):
    """Why a timer among these units would stop firing, or its service be ended too early: one sentence each.

    :param units: {file name: text} of timers and services
    :param least: {service: seconds that one run may need}
    """
    problems = []
    says = {name: _last_values(text) for name, text in units.items()}
    for name in sorted(name for name in says if name.endswith(".timer")):
        elapses = _elapses(units[name])
        if not elapses.intersection(_REPEATS):
            problems.append("%s: it elapses once only, without any of %s" % (name, ", ".join(_REPEATS)))
        elif not elapses.intersection(_BEGINS):
            problems.append("%s: it never elapses a first time, without any of %s" % (name, ", ".join(_BEGINS)))
        service = says[name].get(("Timer", "Unit")) or name[: -len(".timer")] + ".service"
        remains = says.get(service, {}).get(("Service", "RemainAfterExit"), "")
        if remains.lower() in ("yes", "y", "true", "t", "on", "1"):
            problems.append("%s: RemainAfterExit=%s keeps it active, so %s never elapses again" % (service, remains, name))
    for name, seconds in sorted(least.items()):
        service = says.get(name)
        if service is None:
            continue
        key, said = _start_limit(units[name], service)
        limit = int(said) * 1000000 if said.isdigit() else systemd_unit.parse_usec(said)
        if not limit:  # 0 and infinity; none is what a oneshot has by itself
            problems.append("%s: without a time limit a run that hangs would keep every later one away: %s=%s" % (name, key, said))
        elif limit < seconds * 1000000:
            problems.append("%s: %s=%s would end a run that may take %d s" % (name, key, said, seconds))
    return problems


def _elapses(text):
    """The keys by which a timer elapses; an empty one resets all that stand before it."""
    found = set()
    for section, key, value in systemd_unit.parse_unit(text):
        if section == "Timer" and key in _BEGINS + _REPEATS:
            if not value:
                found.clear()
            elif value != "infinity":
                found.add(key)
    return found


def _start_limit(text, service):
    """(key, value) that limits the start of a service: the last of TimeoutSec and TimeoutStartSec."""
    given = [(key, value) for section, key, value in systemd_unit.parse_unit(text) if section == "Service"]
    given = [one for one in given if one[0] in ("TimeoutSec", "TimeoutStartSec")]
    # systemd's default is 90 s, but none for a oneshot
    return given[-1] if given else ("TimeoutStartSec", "infinity" if service.get(("Service", "Type")) == "oneshot" else "90")


def _last_values(text):
    return {(section, key): value for section, key, value in systemd_unit.parse_unit(text)}
