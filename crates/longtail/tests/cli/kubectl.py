#!/usr/bin/python3
# The part of kubectl that `deploy/kubernetes/run` uses, with local processes as pods: each in a PID namespace, with a folder as its volume.
import os, re, subprocess, sys, yaml

folder = os.environ["PODS"]
command, words = sys.argv[1], sys.argv[2:]


def volume(pod): return f"{folder}/{pod}"


if command == "apply":
    job = yaml.safe_load(sys.stdin)["spec"]
    assert job["completionMode"] == "Indexed" and job["completions"] == job["parallelism"]
    container = job["template"]["spec"]["containers"][0]
    for k in range(job["completions"]):
        os.mkdir(volume(f"pod-{k}"))
        argv = [word.replace("/parts", volume(f"pod-{k}")) for word in container["command"] + container["args"]]
        env = os.environ | {one["name"]: one["value"] for one in container["env"]} | {"JOB_COMPLETION_INDEX": str(k)}
        log = open(f"{folder}/pod-{k}.log", "w")
        pod = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *argv], env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        with open(f"{folder}/pid-{k}", "w") as file: file.write(str(pod.pid))
elif command == "get":
    k = re.search("completion-index=([0-9]+)", words[2])[1]
    with open(f"{folder}/pid-{k}") as file, open(f"/proc/{file.read()}/stat") as stat:
        print(f"pod-{k}", "Failed" if ") Z " in stat.read() else "Running")
elif command == "exec":
    pod, _, *argv = words
    if not os.path.isdir(volume(pod)): sys.exit(1)
    sys.exit(subprocess.run([word.replace("/parts", volume(pod)) for word in argv]).returncode)
elif command == "logs":
    with open(f"{folder}/{words[0]}.log") as log: print(log.read(), end="")
elif command == "delete":
    for name in os.listdir(folder):
        if name.startswith("pid-"):
            with open(f"{folder}/{name}") as file: subprocess.run(["kill", "-9", file.read()], stderr=subprocess.DEVNULL)
else:
    sys.exit(f"no {command} here")
