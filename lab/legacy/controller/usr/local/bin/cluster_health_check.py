#!/usr/bin/env python3
"""集群巡检 v0.2: 逐个节点看 slurmd 和 munge 是否在运行 (只看，不修)."""
import subprocess
import sys

NODES = ["k8s-node-01", "k8s-node-02", "k8s-node-03"]
TRIES = 6 if "--bootstrap" in sys.argv else 1


def active(node, unit):
    ssh = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", node]
    return subprocess.call(ssh + ["systemctl", "is-active", "--quiet", unit]) == 0


def ready(node):
    return active(node, "munge") and active(node, "slurmd")


good = 0
for node in NODES:
    ok = any(ready(node) for _try in range(TRIES))
    good += ok
    print("%s %s" % (node, "正常" if ok else "异常"))
print("%d/%d 节点正常" % (good, len(NODES)))
