# The part of DigitalOcean's API v2 that the playbooks use, on loopback, with faults on demand.
#
#   digitalocean.py STATE FAULTS     a fault is a line: METHOD PATH NTH STATUS, such as "POST /v2/droplets 2 500" (status 0: no response)
#
# NTH may be "all". When the file FAULTS changes, calls are numbered from 1 again. Prints its port, and writes the state of the account to
# STATE whenever that changes.
import base64
import http.server
import itertools
import json
import re
import sys
import threading
import time

STATE, FAULTS = sys.argv[1:]
TOKEN = "dop_v1_secret"
account = {"droplets": [], "ssh_keys": [], "tags": [], "deleted": 0}
calls, faults, numbers, lock = {}, [], itertools.count(101), threading.Lock()
MESSAGES = {401: "Unable to authenticate you", 429: "API Rate limit exceeded.", 500: "Server Error"}


class Api(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass

    def answer(self, status, body=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def fault(self, path):
        with open(FAULTS) as file: now = [line.split() for line in file]
        if now != faults:
            faults[:] = now
            calls.clear()
        nth = calls[self.command, path] = calls.get((self.command, path), 0) + 1
        for method, of, when, status in faults:
            if (method, of) == (self.command, path) and when in ("all", str(nth)): return int(status)
        return 401 if self.headers["Authorization"] != f"Bearer {TOKEN}" else None

    def do(self):
        path, _, query = self.path.partition("?")
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        with lock: fault = self.fault(path)
        if fault == 0: return time.sleep(600)
        if fault: return self.answer(fault, {"id": "fault", "message": MESSAGES[fault]})
        with lock:
            status, answer = self.route(path, query, body)
            with open(STATE, "w") as file: json.dump(account, file)
        self.answer(status, answer)

    do_GET = do_POST = do_DELETE = do

    def route(self, path, query, body):
        tag = re.search("tag_name=([^&]+)", query)
        tagged = [box for box in account["droplets"] if tag and tag[1] in box["tags"]]
        match self.command, path:
            case "GET", "/v2/account/keys": return 200, {"ssh_keys": account["ssh_keys"]}
            case "POST", "/v2/account/keys":
                base64.b64decode(body["public_key"].split()[1], validate=True)
                number = next(numbers)
                account["ssh_keys"].append({"id": number, "fingerprint": f"00:{number}", **body})
                return 201, {"ssh_key": account["ssh_keys"][-1]}
            case "GET", "/v2/droplets":
                listed = json.loads(json.dumps(tagged))
                for box in tagged: box["status"] = "active"  # by the next time that somebody asks
                return 200, {"droplets": listed}
            case "POST", "/v2/droplets":
                number = next(numbers)
                if body["ssh_keys"][0] not in [key["fingerprint"] for key in account["ssh_keys"]]: return 422, {"message": "no such key"}
                v4 = [{"type": "private", "ip_address": f"10.77.0.{number}"}, {"type": "public", "ip_address": f"192.0.2.{number}"}]
                account["droplets"].append({"id": number, "status": "new", "networks": {"v4": v4}, **body})
                account["tags"] = sorted({*account["tags"], *body["tags"]})
                return 202, {"droplet": account["droplets"][-1]}
            case "DELETE", "/v2/droplets":
                account["droplets"] = [box for box in account["droplets"] if box not in tagged]
                account["deleted"] += len(tagged)
                return 204, None
            case "DELETE", _:
                for kind, field in ("ssh_keys", "id"), ("tags", None):
                    for one in account[kind]:
                        if path.endswith(f"/{one[field] if field else one}"):
                            account[kind].remove(one)
                            return 204, None
        return 404, {"id": "not_found", "message": "The resource you were accessing could not be found."}


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
with open(STATE, "w") as file: json.dump(account, file)
print(server.server_port, flush=True)
server.serve_forever()
