package gateway_test

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"troupe/actors/actorstest"
	"troupe/actors/identity"
	"troupe/actors/identity/password"
	"troupe/actors/outbox"
	"troupe/actors/quota"
	"troupe/actors/template/templatetest"
	"troupe/gateway/wiretest"
	"troupe/persistence/storetest"
)

const annsPassword = `an "old" oak, 1843`

// TestInterface plays the transcripts in testdata/interface, one subject a file, each at a service of its own:
//
//	home NAME base=PATH cookie=NAME proxy=PREFIX password query alone quota sends
//	                            a new service with the files of testdata/home/NAME, or none, and those of the input, "FILE: TEXT",
//	                            where ann has annsPassword; with alone not on several nodes, with query none has time, with quota a
//	                            user has ten events per second, and an instance 12 entries and two events at once; with sends
//	                            parents and children reach each other
//	USER desk brief show=(A, B) same times step=DURATION repeat=N each=(A, B) at-once=N follow
//	                            the requests of the input in the name of a user or of nobody; $i counts, $x is one of each,
//	                            which may be lines behind "each" as well
//	unchanged NAME              a record that was shown is what adm reads now
//	instances WORKFLOW          how many there are
//	job NAME                    a bulk job when it has ended, or rests
//	incidents N                 until there are as many: they are written behind the answer
//	write FILE                  the input in place of a file of the home; without any the file goes
//	docx FILE                   a document with this body
//	touch FILE…                 they were changed in this order; it is known with the next write
//	edit FILE                   the first line of the input becomes the second
//	advance DURATION            of the clock, which else moves by a millisecond with each request, or the step
//	token NAME USER DURATION    a token that ends; revoke NAME; password USER, annsPassword again
//	await                       until all nodes know who may do what
//	disk BYTES                  are free
//	log WORD                    how often it was logged
//	listen NAME USER show=…     a stream: its path below watch, and headers
//	hear NAME…                  the next event of each
//	gather NAME…                the same in any order: entries of different instances have none
//	over NAME…                  they end by themselves
//	raw brief cut               bytes that need not be HTTP, and all that comes back. Lines end with CRLF, and \r and \n stand for themselves;
//	                            with cut all beginnings of them, for rows behind "each" each of them as $x
//	connect NAME, send NAME     such bytes on a connection that stays open; close NAME
//	read NAME N                 so many lines of the answer on it, or all
//	counter NAME                one of all gateways together
//
// A request is "NAME:WHERE … = METHOD PATH BODY". The body may go on in lines that begin with blanks, and header lines
// follow; those in front of the first request are of all. CREATE WORKFLOW DATA and EVENT WORKFLOW/INSTANCE NAME DATA
// are what most files ask. What stands at WHERE in the answer (selected, see there; the
// id when WHERE is left out) is $NAME from then on, in what is sent and what is printed. A path is below that of group B
// if it does not begin with "/" or "=", which is left out. See expand for what else is replaced.
//
// Of an answer its status and body are printed, with show those members and headers only, with
// brief nothing but the status, of errors their words. With
// desk a user comes with a session. With same all answers must be the first, byte for byte; with follow all pages are
// printed, and with times those are as they came.
func TestInterface(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/interface", func(t *testing.T, path string) {
		t.Parallel() // they wait for streams that end, and for what comes later
		s := &transcript{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		datadriven.RunTest(t, path, s.run)
	})
}

// transcript is what a file has done so far.
type transcript struct {
	*service
	mu        sync.Mutex
	at        time.Time         // of the clock; guarded by mu
	values    map[string]string // by name
	listeners map[string]*listener
	shows     map[string][]string // by listener
	wires     map[string]*wire
}

func (s *transcript) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *transcript) advance(d time.Duration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
	return "ok\n"
}

func (s *transcript) run(t *testing.T, cmd *datadriven.TestData) string {
	arg := func(n int) string {
		if n < len(cmd.CmdArgs) {
			return cmd.CmdArgs[n].Key
		}
		return ""
	}
	switch cmd.Cmd {
	case "home":
		return s.start(t, cmd)
	case "advance":
		d, err := time.ParseDuration(arg(0))
		require.NoError(t, err)
		maps.DeleteFunc(s.values, func(name, _ string) bool { return strings.HasPrefix(name, "session.") }) // they may end
		return s.advance(d)
	case "touch":
		for i, arg := range cmd.CmdArgs {
			at := time.UnixMilli(int64(i + 1))
			require.NoError(t, os.Chtimes(filepath.Join(s.Dir, arg.Key), at, at))
		}
		return "ok\n"
	case "write":
		text := s.expand(t, cmd.Input)
		if text != "" {
			text += "\n"
		}
		s.Write(arg(0), text)
		return "ok\n"
	case "docx":
		s.Write(arg(0), string(templatetest.Docx(cmd.Input)))
		return "ok\n"
	case "edit":
		text, err := os.ReadFile(filepath.Join(s.Dir, arg(0)))
		require.NoError(t, err)
		from, to, _ := strings.Cut(cmd.Input, "\n")
		to = s.expand(t, to)
		require.Contains(t, string(text), from)
		s.Write(arg(0), strings.Replace(string(text), from, to, 1))
		return "ok\n"
	case "revoke", "token", "password", "await":
		s.identities(t, cmd.Cmd, arg)
		return "ok\n"
	case "disk":
		free, err := strconv.ParseUint(arg(0), 10, 64)
		require.NoError(t, err)
		for _, n := range s.Nodes() {
			n.Disk.SetFree(free)
			storetest.AwaitAccepting(t, n.Store, free > 0)
		}
		return "ok\n"
	case "log":
		return strconv.Itoa(strings.Count(s.log(), arg(0))) + " times\n"
	case "instances":
		return pick(s.adm(t).Get(t, wiretest.Root+"/instances/"+arg(0)+"?limit=1&count=true").Body, "count") + "\n"
	case "job": // it goes on beside requests, and is asked until it has ended
		for {
			text := s.adm(t).Get(t, wiretest.Root+"/bulk/"+s.value(t, arg(0))).Body
			if pick(text, "status") != `"running"` {
				return s.masked(text) + "\n"
			}
			<-time.After(10 * time.Millisecond)
		}
	case "incidents":
		for strconv.Itoa(strings.Count(s.adm(t).Get(t, wiretest.Root+"/incidents").Body, `"instanceId"`)) != arg(0) {
			<-time.After(10 * time.Millisecond)
		}
		return "ok\n"
	case "unchanged":
		was := s.value(t, arg(0)+".record")
		now := pick(s.adm(t).Load(t, strings.Trim(pick(was, "workflowId"), `"`), s.value(t, arg(0))).Body, "state")
		if now == was {
			return "ok\n"
		}
		return s.masked(now) + "\n"
	case "listen", "hear", "gather":
		return s.listening(t, cmd)
	case "over":
		return s.over(t, cmd.CmdArgs)
	case "raw":
		return s.raw(t, cmd)
	case "connect", "send", "read", "close":
		return s.onWire(t, cmd)
	case "counter":
		sum := uint64(0)
		for _, server := range s.gateways {
			sum += reflect.ValueOf(server.Metrics()).FieldByName(arg(0)).Uint()
		}
		return fmt.Sprintln(sum)
	}
	return s.ask(t, cmd)
}

// filesOf reads a folder of testdata/home.
func filesOf(name string) map[string]string {
	files, root := map[string]string{}, os.DirFS("testdata/home/"+name)
	if err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var text []byte
			text, err = fs.ReadFile(root, path)
			files[path] = string(text)
		}
		return err
	}); err != nil {
		panic(err)
	}
	return files
}

func (s *transcript) start(t *testing.T, cmd *datadriven.TestData) string {
	if cmd.HasArg("alone") && *nodes > 1 {
		t.Skip("it holds on one node only, as the file says")
	}
	s.values, s.listeners, s.shows, s.wires = map[string]string{}, map[string]*listener{}, map[string][]string{}, map[string]*wire{}
	o := serviceOptions{Options: actorstest.Options{Clock: s.now}}
	if name := cmd.CmdArgs[0].Key; name != "none" {
		o.Files = filesOf(name)
	}
	for line := range strings.Lines(cmd.Input) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		o.Files[s.expand(t, name)] = text + "\n"
	}
	o.Identity = identity.Options{PasswordCost: password.Cost{MemoryKiB: 8, Passes: 1, Lanes: 1}, FlushEvery: time.Hour}
	for _, arg := range cmd.CmdArgs[1:] {
		switch arg.Key {
		case "sends":
			o.Workflow.Sender = deaf{}
		case "query":
			o.Workflow.QueryTimeMax = time.Nanosecond
		case "quota":
			o.Workflow.InstanceInFlightMax, o.Workflow.Quotas = 2, quota.Limits{EventsPerSecond: 10, HistoryEntries: 12}
		case "base":
			o.Gateway.BasePath = arg.Vals[0]
		case "cookie":
			o.Gateway.SessionCookie = arg.Vals[0]
		case "proxy":
			o.Gateway.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(arg.Vals[0])}
		}
	}
	if s.service = startService(t, o); cmd.HasArg("password") {
		s.identities(t, "password", func(int) string { return "ann" })
	}
	return "ok\n"
}

// deaf answers nothing that instances send out.
type deaf struct{}

func (deaf) Send(ctx context.Context, _ outbox.Attempt) outbox.Answer {
	<-ctx.Done()
	return outbox.Answer{Err: ctx.Err()}
}
func (deaf) URL(outbox.Attempt) string { return "" }

// identities changes who may do what.
func (s *transcript) identities(t *testing.T, what string, arg func(int) string) {
	s.ChangeIdentities(func(i identity.Identities) (err error) {
		switch what {
		case "revoke":
			kind := identity.Token
			if strings.HasPrefix(s.value(t, arg(0)), "ses_") {
				kind = identity.Session
			}
			id, _, _ := strings.Cut(s.value(t, arg(0)), ".")
			return i.Revoke(t.Context(), kind, id)
		case "token":
			d, err := time.ParseDuration(arg(2))
			require.NoError(t, err)
			s.values[arg(0)], _, err = i.Create(t.Context(), identity.Token, identity.CreateCredential{User: identity.UserID(arg(1)), Expires: d})
			return err
		case "password":
			return i.SetPassword(t.Context(), identity.UserID(arg(0)), annsPassword)
		}
		return nil
	})
}

// asked is one request of a block.
type asked struct {
	request
	names []string // "NAME:WHERE"
}

func (s *transcript) adm(t *testing.T) user { return s.user(s.credential(t, "adm", false)...) }

// credential is that of who asks: one of the home with a token, or a session, or nobody.
func (s *transcript) credential(t *testing.T, name string, desk bool) []string {
	switch {
	case name == "nobody":
		return nil
	case desk:
		return []string{"Cookie: session=" + s.value(t, "session."+name)}
	}
	return []string{"Authorization: svc.token " + s.value(t, "token."+name)}
}

// requests reads the input of a block.
func (s *transcript) requests(input string, credential []string) (all []asked) {
	for line := range strings.SplitSeq(input, "\n") {
		parts := requestLine.FindStringSubmatch(line)
		switch n := len(all) - 1; {
		case parts != nil:
			all = append(all, asked{request{Method: parts[2], Path: parts[3], Headers: slices.Clone(credential), Body: parts[4]}, strings.Fields(parts[1])})
		case strings.HasPrefix(line, "  "):
			all[n].Body = strings.TrimPrefix(all[n].Body+"\n"+line[2:], "\n")
		case n < 0:
			credential = append(credential, line)
		default:
			all[n].Headers = append(all[n].Headers, line)
		}
	}
	return all
}

// ready is a request with what is known by now.
func (s *transcript) ready(t *testing.T, r request) request {
	r.Path, r.Body = s.expand(t, r.Path), s.expand(t, r.Body)
	switch r.Method {
	case "CREATE":
		r.Method, r.Path, r.Body = http.MethodPost, "create", wiretest.CreateBody(r.Path, r.Body)
	case "EVENT":
		workflow, instance, _ := strings.Cut(r.Path, "/")
		name, content, _ := strings.Cut(r.Body, " ")
		r.Method, r.Path, r.Body = http.MethodPost, "event", wiretest.EventBody(workflow, instance, name, content)
	}
	if target, as := strings.CutPrefix(r.Path, "="); as {
		r.Path = target
	} else if strings.HasPrefix(r.Path, "/") {
		r.Path = s.Base + r.Path
	} else {
		r.Path = s.Base + wiretest.Root + "/" + r.Path
	}
	for i, header := range r.Headers {
		r.Headers[i] = s.expand(t, header)
	}
	isType := func(header string) bool { return strings.HasPrefix(header, "Content-Type:") }
	if r.Body != "" && !slices.ContainsFunc(r.Headers, isType) {
		r.Headers = append(r.Headers, wiretest.JSONType)
	}
	r.Headers = slices.DeleteFunc(r.Headers, func(h string) bool { return h == "Content-Type: -" })
	return r
}

// showOf is what a block prints of its answers.
func showOf(cmd *datadriven.TestData) []string {
	if cmd.HasArg("brief") {
		return []string{"status"}
	}
	arg, _ := cmd.Arg("show")
	return arg.Vals
}

// ask sends what the input says.
func (s *transcript) ask(t *testing.T, cmd *datadriven.TestData) string {
	show := showOf(cmd)
	number := func(name string) int {
		if arg, ok := cmd.Arg(name); ok {
			n, err := strconv.Atoi(arg.Vals[0])
			require.NoError(t, err)
			return n
		}
		return 1
	}
	var first *answer
	var printed []string
	tell := func(a answer, names []string) {
		s.learn(t, a, names)
		line := shown(a, show)
		if line = s.named(line); !cmd.HasArg("times") {
			line = timeless(line)
		}
		printed = append(printed, line)
		if first == nil {
			first = &a
		} else if cmd.HasArg("same") {
			wantSameAnswer(t, a, *first)
		}
	}
	copies, step := number("at-once"), time.Millisecond
	if arg, ok := cmd.Arg("step"); ok {
		var err error
		step, err = time.ParseDuration(arg.Vals[0])
		require.NoError(t, err)
	}
	input, table, _ := strings.Cut(cmd.Input, "\neach\n")
	each := strings.Split(table, "\n")
	if arg, ok := cmd.Arg("each"); ok {
		each = arg.Vals
	}
	for i := range max(number("repeat"), len(each)) {
		s.values["i"] = strconv.Itoa(i)
		s.values["x"] = s.expand(t, each[min(i, len(each)-1)])
		for _, r := range s.requests(input, s.credential(t, cmd.Cmd, cmd.HasArg("desk"))) {
			s.advance(step)
			ready := s.ready(t, r.request)
			if copies > 1 {
				before := len(printed)
				for _, a := range s.AtOnce(t, copies, ready) {
					tell(a, r.names)
				}
				slices.Sort(printed[before:])
				continue
			}
			a := s.Send(t, ready)
			tell(a, r.names)
			for link := a.Header.Get("Link"); cmd.HasArg("follow") && link != ""; link = a.Header.Get("Link") {
				ready.Path = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
				a = s.Send(t, ready)
				tell(a, nil)
			}
		}
	}
	return collapsed(printed)
}

// learn keeps what an answer says under its names, and the record of an instance under that of its id.
func (s *transcript) learn(t *testing.T, a answer, names []string) {
	for _, name := range names {
		name, where, _ := strings.Cut(s.expand(t, name), ":")
		value := selected(a, cmp.Or(where, "id"))
		require.NotEqual(t, "-", value, "there is no %s in %d %.600s", where, a.Status, a.Body)
		s.values[name] = strings.Trim(value, `"`)
	}
	if !strings.HasPrefix(a.Body, `{"workflowId":`) && !strings.HasPrefix(a.Body, `{"state":`) {
		return
	}
	r, err := a.ReadRecord()
	if err != nil {
		return
	}
	if r.History != nil {
		require.Empty(t, r.HistoryReason())
	}
	for name, value := range maps.Clone(s.values) {
		if value == r.ID {
			s.values[name+".record"] = pick(a.Body, "state")
		}
	}
}
