#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# notify: a command, mail and webhook, each once at the end, at the first failure, and when a line of output matches.
. "$srcdir/tests/lib.sh"

# ---- stand-ins for mail, sendmail and curl, which record what they get
mkdir bin nomail
cat >bin/mail <<'END'
#!/bin/sh
{ echo "$*"; cat; } >>"$HERE/mails"
END
cat >bin/curl <<'END'
#!/bin/sh
{ echo "args: $*"; cat; } >>"$HERE/curls"
exit "${CURL_STATUS:-0}"
END
cat >nomail/sendmail <<'END'
#!/bin/sh
{ echo "$*"; cat; } >>"$HERE/sendmails"
END
chmod +x bin/* nomail/*
HERE=$work
export HERE
echo "https://hooks.example/T0/secret-word" >url
chmod 600 url

conf () { # conf NAME COMMAND NOTIFY [MORE]
    cat >"$1.conf" <<END
name = "$1"; entrypoint = "$2 # {lr}"; $4
searcher = { name = "random"; metric = "loss"; max_trials = 4; };
hyperparameters = { lr = { type = "float"; minval = 0.0; maxval = 1.0; }; };
resources = { workers = 2; };
metrics = { pattern = "loss={loss}"; };
notify = { $3 };
worker = { heartbeat = 1; lease = 30; grace = 5; };
END
}
search () { # search NAME: run the sweep
    PATH=$work/bin:$PATH timeout 300 dl run --local "$1.conf" >out 2>&1
}

# ---- the end, by command, mail and webhook
conf all "echo loss={trial}" 'command = "cat >>got; echo $DL_NOTIFY_EVENT: $DL_NOTIFY_TEXT >>texts"; mail = "me@example.org"; webhook = "url";'
search all
is $? 0 "a sweep"
is "$(cat texts)" "end: all-0001: completed, 0 of its trials failed; 4 trials; best loss 1: trial 1" "the command has the text"
like "$(cat got)" '^{"text":"all-0001: completed.*"event":"end".*"best":{"metric":"loss","value":1.0,"trial":1}}$' "and JSON"
is "$(cat mails)" "-s dl: all-0001: end me@example.org
dl: all-0001: completed, 0 of its trials failed; 4 trials; best loss 1: trial 1" "a mail"
is "$(grep -c '^args' curls)" 1 "curl is called once"
like "$(cat curls)" '^url = "https://hooks.example/T0/secret-word"' "with the URL on its standard input"
like "$(cat curls)" '^data-raw = "{\\"text\\":\\"all-0001: completed' "and the JSON"
is "$(grep '^args' curls | grep -c secret)" 0 "the URL is no argument"
is "$(grep -rl secret-word all-0001 out)" "" "and is written nowhere"

# ---- trials run in a frozen copy, but the command runs in the user's folder
rm -f texts curls
echo "echo loss=1" >say.sh
conf frozen "sh say.sh" 'command = "echo $DL_NOTIFY_EVENT >>texts"; webhook = "url";'
(export DL_FREEZE=true && search frozen)
is "$? $(ls -d frozen-0001/code)" "0 frozen-0001/code" "a sweep with frozen code"
is "$(cat texts)" "end" "its command runs in the folder of the experiment file"
is "$(grep -c '^args' curls)" 1 "and the file with the URL is found there"

# ---- a real curl and a server on loopback
if command -v curl >/dev/null && command -v python3 >/dev/null; then
    cat >server.py <<'END'
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("posted", "ab").write(self.path.encode() + b" " + self.headers["Content-Type"].encode() + b" " + body + b"\n")
        self.send_response(500 if "fail" in self.path else 302 if "moved" in self.path else 200)
        self.send_header("Location", "/there")
        self.end_headers()

    def log_message(self, *a):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open("port.new", "w").write(str(server.server_port))
import os
os.rename("port.new", "port")
server.serve_forever()
END
    python3 server.py &
    server=$!
    wait_for 60 test -s port
    conf real "echo 'loss=1 \\\"quoted\\\" \\\\\\\\ back'; exit 78" 'webhook = "$HOOK"; on = "failure";'
    HOOK=http://127.0.0.1:$(cat port)/hook/secret timeout 300 dl run --local real.conf >out 2>&1
    like "$(cat posted)" '^/hook/secret application/json {"text":"real-0001: trial [0-9]+ failed: .*"quoted' "curl posts to the URL in a variable" || cat out
    python3 -c 'import json; [json.loads(line.split(" ", 2)[2]) for line in open("posted")]'
    ok $? "it is JSON, whatever the log contains"
    # shellcheck disable=SC2016
    conf answer "echo loss=1" 'webhook = "$HOOK";'
    for case in "fail:server rejects the webhook" "moved:webhook has moved"; do
        HOOK=http://127.0.0.1:$(cat port)/${case%%:*}/secret timeout 300 dl run --local answer.conf >out 2>&1
        like "$(cat answer-*/workers/* out)" "^dl: notify: curl: the ${case#*:}" "the server answers ${case%:*}: the notification failed"
    done
    is "$(grep -rl /secret answer-* out)" "" "without the URL"
    kill $server
    wait $server 2>/dev/null
    is "$(HOOK='' dl run --local real.conf 2>&1; echo $?)" "dl: 'notify.webhook': its first line must be a URL that starts with https:// or http://
2" "an empty variable"
    is "$(env -u HOOK dl run --local real.conf 2>&1; echo $?)" "dl: 'notify.webhook': the variable HOOK is not set
2" "no variable"
else
    skip "a real curl" "no curl or no python3"
fi

# ---- failures
rm -f texts got
conf bad 'echo broken; exit 78' 'command = "echo $DL_NOTIFY_EVENT: $DL_NOTIFY_TEXT >>texts";'
search bad
is "$(grep -c '^failure: bad-0001: trial [0-9]* failed: ' texts)" 1 "the first failed trial, once"
like "$(cat texts)" "^failure: bad-0001: (failed, 4 of its trials failed|paused because all attempts)" "and the end, or the pause"
is "$(wc -l <texts)" 2 "nothing else"

# ---- a line of output
rm -f texts
conf line 'echo loss=1; echo the gradient is NaN in trial {trial}' 'command = "echo $DL_NOTIFY_EVENT: $DL_NOTIFY_TEXT >>texts"; on = (); pattern = ["gradient is NaN", "never there"];'
search line
is "$(wc -l <texts)" 1 "a pattern is reported once"
like "$(cat texts)" '^pattern: line-0001: trial [0-9]: the gradient is NaN in trial [0-9]; ' "with the line"

# ---- a matching line is reported while the attempt still runs; dl stop
rm -f texts got
conf early 'echo loss=1; echo the gradient is NaN; until [ -f go ]; do sleep 0.1; done' 'command = "cat >>got; echo $DL_NOTIFY_EVENT: $DL_NOTIFY_TEXT >>texts"; pattern = "is NaN";'
PATH=$work/bin:$PATH timeout 300 dl run --local early.conf >out 2>&1 &
holds "a line is reported while its attempt runs" wait_for 200 grep -q '^pattern: early-0001: trial [0-9]: the gradient is NaN; ' texts
wait_for 300 test -e early-0001/trials/0002/a.1/log
dl stop early >out2
wait_for 300 grep -q '^end: ' texts # sent by whichever process notices first
is "$(grep -c '^end: ' texts) $(grep '^end: ' texts)" "1 end: early-0001: stopped by $(id -un), 0 of its trials failed; 2 trials" "dl stop reports who did it"
touch go
wait
dl stop early >out2
dl kill early >out2
dl kill early >out2
is "$(wc -l <texts) $(wc -l <got)" "3 3" "each request once; JSON is a line"

# ---- failed notifications do not fail the sweep
conf slow "echo loss=1" 'command = "sleep 1000; true"; timeout = 1;'
search slow
is $? 0 "a command that hangs is killed, and the sweep completes"
like "$(cat slow-0001/workers/* out 2>/dev/null)" "notify: /bin/sh: killed after 1 s" "and says so"
conf none "echo loss=1" 'command = "exit 3"; webhook = "url";'
CURL_STATUS=22
export CURL_STATUS
search none
is $? 0 "nor do error statuses"
like "$(cat none-0001/workers/* out 2>/dev/null)" "notify: curl: the server rejects the webhook" "which are reported"
is "$(cat none-0001/workers/* out 2>/dev/null | grep -c secret)" 0 "without the URL"
name="s
Bcc: evil@example.org-0001"
mv all-0001 "./$name"
PATH=$work/bin:$PATH timeout 300 dl continue --local --trials=5 -- "./$name" >out 2>&1
like "$(cat mails)" '^-s dl: s Bcc: evil@example.org-0001: end me@example.org' "a folder's name cannot become a mail header"
conf send "echo loss=1" 'mail = "me@example.org";'
if ! command -v mail >/dev/null; then
    PATH=$work/nomail:$PATH timeout 300 dl run --local send.conf >out 2>&1
    like "$(cat sendmails)" "^Subject: dl: send-0001: end" "sendmail if there is no mail"
fi

# ---- mistakes
for notify in 'webhook = "https://hooks.example/x";:must be a file with the URL' \
    'mail = "-a/etc/passwd x";:must be one address' 'on = "begin";:must be "end", "failure" or a list' \
    'pattern = "(";:.notify.pattern. "\("' 'timeout = 1000;:notify.timeout'; do
    conf wrong "echo loss=1" "${notify%%;:*};"
    like "$(dl run --dry-run wrong.conf 2>&1)" "${notify#*;:}" "${notify%%;:*}"
done
conf wrong "echo loss=1" 'webhook = "url";'
chmod 644 url
like "$(dl run --local wrong.conf 2>&1; echo "=$?")" "url: others may read or change it: it must be your own, of mode 0600" "a URL that others can read"
rm url
is "$(dl run --local wrong.conf >/dev/null 2>&1; echo $?)" 2 "no such file"
done_testing
