package endtoend

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
	"troupe/persistence"
)

// played is the program of a transcript, and its answers that have a name.
type played struct {
	*program
	scene   *clitest.Scene
	answers map[string]string
	held    *persistence.Store
}

// TestTranscripts plays testdata/transcripts on programs of their own. Commands of run are of this process.
//
//	put FILE          writes a file as an editor does: a new one takes the old one's place
//	start HOME FLAG…  starts the program, at $address, and waits until it is ready; unready=TEXT until that is logged
//	stop, kill        ends it
//	hold HOME, free   opens the store of a home in this process, and closes it and waits until the program is ready
//	ask METHOD PATH   sends a request with the input as its body, as=FILE with the token there, cookie=FILE with the session,
//	                  key=KEY; into=FILE writes the session of the answer. An answer with a name=NAME is compared with the one
//	                  that had it before, byte for byte
//	until …           is ask again and again, until the answer is the one below
//	await             waits for a line of the log that has all lines of the input; logged says whether one has
func TestTranscripts(t *testing.T) {
	p := &played{}
	commands := clitest.Commands{}
	for name, do := range map[string]func(cmd *datadriven.TestData, args []string) string{
		"put": p.put, "start": p.start, "ask": p.ask, "until": p.until,
		"stop": func(*datadriven.TestData, []string) string { p.stop(); return "" },
		"kill": func(*datadriven.TestData, []string) string { p.kill(); return "" },
		"hold": func(_ *datadriven.TestData, args []string) string {
			var err error
			p.held, err = persistence.Open(homedir.Data(args[0]), persistence.Options{})
			require.NoError(t, err)
			return ""
		},
		"free": func(*datadriven.TestData, []string) string { require.NoError(t, p.held.Close()); p.ready(); return "" },
		"await": func(cmd *datadriven.TestData, _ []string) string {
			p.wantLine(strings.Split(cmd.Input, "\n")...)
			return ""
		},
		"logged": func(cmd *datadriven.TestData, _ []string) string { return strconv.FormatBool(p.log.has(cmd.Input)) },
	} {
		commands[name] = func(s *clitest.Scene, cmd *datadriven.TestData) string {
			if p.scene != s {
				*p = played{scene: s, answers: map[string]string{}}
			}
			var args []string
			for _, a := range cmd.CmdArgs {
				if !slices.Contains(named, a.Key) {
					args = append(args, s.Meant(a.String()))
				}
			}
			return do(cmd, args)
		}
	}
	clitest.Transcripts(t, "testdata/transcripts", commands)
}

// named are the arguments that have names. A path may look like one.
var named = []string{"as", "cookie", "key", "into", "name", "unready"}

// given is a named argument, or nothing.
func given(cmd *datadriven.TestData, name string) string {
	if arg, ok := cmd.Arg(name); ok {
		return arg.Vals[0]
	}
	return ""
}

func (p *played) put(cmd *datadriven.TestData, args []string) string {
	dir, name := filepath.Split(args[0])
	(&home{t: p.scene.T, dir: dir}).write(name, cmd.Input+"\n")
	return ""
}

func (p *played) start(cmd *datadriven.TestData, args []string) string {
	h := &home{t: p.scene.T, dir: args[0]}
	if settings, err := os.ReadFile(filepath.Join(h.dir, "troupe.yaml")); err == nil {
		if found := regexp.MustCompile(`basePath: (\S+)`).FindSubmatch(settings); found != nil {
			h.basePath = string(found[1])
		}
	}
	p.program = launch(p.scene.T, h, binary(), args[1:]...)
	if line := given(cmd, "unready"); line != "" {
		p.wantLine(line)
	} else {
		p.ready()
	}
	p.scene.Call("$address", p.address())
	return ""
}

var (
	aMoment  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	aNumber  = regexp.MustCompile(`(Retry-After: )\d+|\d+( MiB are free)|("build":{)[^}]*`) // of chance, of the machine, and of the build
	aSession = regexp.MustCompile(`session=([A-Za-z0-9._-]{43,});`)
)

func (p *played) ask(cmd *datadriven.TestData, args []string) string {
	r := request{Method: args[0], Path: p.Base + args[1], Body: p.scene.Meant(cmd.Input)}
	for name, header := range map[string]string{"as": "Authorization: svc.token ", "cookie": "Cookie: session="} {
		if file := given(cmd, name); file != "" {
			secret, err := os.ReadFile(file)
			require.NoError(p.t, err)
			r.Headers = append(r.Headers, header+strings.TrimSpace(string(secret)))
		}
	}
	if key := given(cmd, "key"); key != "" {
		r.Headers = append(r.Headers, "Idempotency-Key: "+key)
	}
	if r.Body != "" {
		r.Headers = append(r.Headers, "Content-Type: application/json", "X-Forwarded-Proto: https")
	}
	a := p.Send(p.t, r)
	text := strconv.Itoa(a.Status)
	for _, name := range []string{"Retry-After", "Set-Cookie"} {
		for _, value := range a.Header[name] {
			text += "\n" + name + ": " + value
		}
	}
	text += "\n" + a.Body
	if found := aSession.FindStringSubmatch(text); found != nil && given(cmd, "into") != "" {
		require.NoError(p.t, os.WriteFile(given(cmd, "into"), []byte(found[1]), 0o600))
	}
	if name := given(cmd, "name"); name != "" {
		whole := text + a.Header.Get("ETag")
		switch before := p.answers[name]; before {
		case "":
			p.answers[name] = whole
		case whole:
			return "as before"
		}
	}
	text = aNumber.ReplaceAllString(aSession.ReplaceAllString(text, "session=SECRET;"), "${1}${3}N$2")
	return aMoment.ReplaceAllString(text, "TIME")
}

// until compares with what is below it: names of ids are not known before.
func (p *played) until(cmd *datadriven.TestData, args []string) (got string) {
	for late := time.Now().Add(waitMax); ; pause(20 * time.Millisecond) {
		if got = p.ask(cmd, args); got == strings.TrimSpace(cmd.Expected) || time.Now().After(late) {
			return got
		}
	}
}
