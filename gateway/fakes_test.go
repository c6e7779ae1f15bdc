package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/login"
	"troupe/gateway/provider"
	"troupe/statemachine/document"
)

// TestFakes plays testdata/fakes: what callers of a server on fakes are told, and what was asked of the actors.
//
//	server [base=/platform] [body=4096] [cookie=desk] [build=v1] [proxies=none] [closed] [bare] [broken]   the server from here on; the first one is there
//	fail [FAKE]   all fakes fail, or one: a kind of failure, a reason, and faults of files in JSON; "none" ends it
//	open          opens a server that was closed, as a node of a cluster with parts; store is why its store is not ready
//	drain         on or off
//	errors        the table of errors
//	address       who is the caller of a request with these headers, and whether the connection is secret
//	link          makes a link for ann, <link> from here on
//	size          of a record, or of the items of a list, without the blanks it begins with; the record has the sequence number 5
//	WHO           requests of one of the callers: METHOD /PATH, headers, and one body a line
//
// {x*9} is nine times x. Peer and To are where a request comes from and goes to, Via is the port of the nodes or of the operator, and Cut is
// what is shown of a long answer. All headers are shown that not every answer has. Several answers have one line each.
func TestFakes(t *testing.T) {
	datadriven.Walk(t, "testdata/fakes", func(t *testing.T, path string) {
		f := &fakes{t: t}
		f.play(t, &datadriven.TestData{Cmd: "server"})
		datadriven.RunTest(t, path, f.play)
	})
}

type fakes struct {
	t *testing.T
	*testServer
	links *login.Links
	link  string
	store error // of the part of that name
	// failed is the text of the last failure.
	failed string
}

type users struct{ of *identity.Directory }

func (u users) Directory() *identity.Directory { return u.of }

func (f *fakes) start(o Options) {
	f.testServer, f.links = startServer(f.t, o, nil), login.NewLinks(nil)
	d, err := identity.ParseDirectory("identity.yaml", []byte("users:\n  - {id: john.doe, name: John Doe}\n  - {id: mary.major, name: Mary Major, disabled: true}\n"))
	require.NoError(f.t, err)
	f.services.Users, f.services.Links = users{d}, f.links
	f.Open(f.services)
}

// broken is a server with routes that fail, of all groups.
func (f *fakes) broken(t *testing.T, o Options) *Server {
	f.failed, o.Log = "disk on fire", zerolog.New(f.log)
	busy := func(*kernel.Exchange) error { return failure.ErrBusy }
	fails := func(*kernel.Exchange) error { panic("disk on fire") }
	s, err := newServer(o, func(table []kernel.Route) []kernel.Route {
		return append(table, kernel.Route{Name: "broken", Method: "GET", Path: "/broken", Access: kernel.Public, Handle: fails},
			kernel.Route{Name: "busy", Method: "GET", Path: "/busy", Access: kernel.Public, Handle: busy},
			kernel.Route{Name: "busy-b", Method: "GET", Path: "/workflow/api/v1/busy", Access: kernel.Public, Handle: busy},
			kernel.Route{Name: "broken-a", Method: "GET", Path: "/form-portal/broken", Group: kernel.GroupPortal, Access: kernel.Public, Handle: fails})
	})
	require.NoError(t, err)
	return s
}

// callers are who asks, and with which headers.
var callers = map[string][]string{
	"ann": {withToken}, "bob": {asBob}, "mod": {withModToken}, "nobody": nil, "session": {"Cookie: session=" + sessionAnn},
	"portal": {withPortal}, "admin": {"Cookie: session=" + sessionOf(privilegeAdmin)},
}

var (
	repeated = regexp.MustCompile(`\{([^{}*]+)\*(\d+)\}`)
	target   = regexp.MustCompile(`^([A-Z]+) (/.*)$`)
	hash     = regexp.MustCompile(`sha256-[^']*`)
	header   = regexp.MustCompile(`^[A-Z][A-Za-z-]*: `)
)

func (f *fakes) play(t *testing.T, d *datadriven.TestData) string {
	lines := strings.Split(strings.ReplaceAll(d.Input, "<link>", f.link), "\n")
	switch d.Cmd {
	case "server":
		o := Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
		d.MaybeScanArgs(t, "base", &o.BasePath)
		d.MaybeScanArgs(t, "cookie", &o.SessionCookie)
		d.MaybeScanArgs(t, "body", &o.BodyBytesMax)
		if d.MaybeScanArgs(t, "build", &o.Build.Version); o.Build.Version != "" {
			o.Build.Commit, o.Build.Go = "0123abc", "go1.26.8"
		}
		if d.HasArg("proxies") { // none
			o.TrustedProxies = nil
		}
		if d.HasArg("closed") {
			f.testServer = startClosed(f.t, o)
			return ""
		}
		f.start(o)
		switch {
		case d.HasArg("bare"):
			f.Open(f.workflows.with(Services{Credentials: fakeCredentials{}}))
		case d.HasArg("broken"):
			services, server := f.services, f.broken(t, o)
			server.Open(services)
			f.Server, f.observed = server, server
		}
		return ""
	case "open":
		f.workflows, f.sessions, f.portal, f.provider = new(fakeWorkflows), new(fakeSessions), new(fakePortal), new(fakeProvider)
		const nodes = `{"self":"A","nodes":[{"id":"A","alive":true,"voter":true,"version":"v1","led":2,"held":3,"lag":0,"settingsDiffer":false}],"short":[65535]}`
		f.Open(f.workflows.with(Services{Credentials: fakeCredentials{}, Portal: f.portal, Cluster: func() any { return json.RawMessage(nodes) }, Parts: []Part{
			{Name: "store", Ready: func() error { return f.store }}, {Name: "files", Optional: true, Ready: func() error { return errors.New("still looking") }},
		}}))
		return ""
	case "store":
		f.store = failureOf(t, lines)
		return ""
	case "drain":
		f.kernel.Draining.Store(lines[0] == "on")
		return ""
	case "errors":
		text := ""
		for kind := failure.Kind(1); kind < failure.Kinds; kind++ {
			m := kernel.MappingOf(fmt.Errorf("operation: %w", kind))
			require.True(t, m.Status != 0 && m.Text != "" && kind.Error() != "", kind)
			text += fmt.Sprintf("%s => %d %s | %s | %s, retry %t: %s\n", kind, m.Status, m.Labels[kernel.GroupPortal], m.Labels[kernel.GroupWorkflow], m.Labels[kernel.GroupFile], m.Retry, m.Text)
		}
		return text
	case "address":
		text := ""
		for _, line := range lines {
			r := newTestRequest("GET", "/", "", strings.Split(line, "; ")[1:]...)
			r.RemoteAddr, _, _ = strings.Cut(line, "; ")
			if strings.HasSuffix(line, "; TLS: yes") {
				r.TLS = new(tls.ConnectionState)
			}
			address, secure := f.kernel.ClientOf(r)
			text += fmt.Sprintf("%s => %s %t\n", line, address, secure)
		}
		return text
	case "size":
		size, err := strconv.Atoi(lines[0])
		require.NoError(t, err)
		f.answerWith(size)
		return ""
	case "link":
		_, f.link, _ = strings.Cut(f.links.Add(userAnn, "/"), "#link=")
		return ""
	case "fail":
		err := failureOf(t, lines)
		f.failed = lines[0]
		switch {
		case d.HasArg("writable"):
			f.sessions.elsewhere = err
		case d.HasArg("end"):
			f.sessions.endFails = err
		}
		for name, fake := range f.all() {
			if len(d.CmdArgs) == 0 || d.HasArg(name) {
				fake.setFail(err)
			}
		}
		return ""
	}
	who, known := callers[d.Cmd]
	require.True(t, known, d.Cmd)
	var out []string
	r, asked, begun := request{}, true, 0
	for i, line := range append(lines, "GET /") { // the last one is not sent
		m := target.FindStringSubmatch(line)
		if m != nil && !asked {
			out = append(out, strings.Join(lines[begun:i], "; "), f.ask(t, r))
		}
		switch {
		case m != nil:
			r, asked, begun = request{Method: m[1], Path: m[2], Headers: who}, false, i
		case header.MatchString(line):
			r.Headers = append(slices.Clone(r.Headers), line)
		default:
			asked, r.Body = true, strings.TrimPrefix(repeated.ReplaceAllStringFunc(line, func(s string) string {
				m := repeated.FindStringSubmatch(s)
				n, _ := strconv.Atoi(m[2])
				return strings.Repeat(m[1], n)
			}), "<nothing>")
			out = append(out, line, f.ask(t, r))
		}
	}
	if len(out) == 2 {
		return out[1]
	}
	text := ""
	for i := 0; i < len(out); i += 2 {
		text += out[i] + " => " + strings.Join(slices.DeleteFunc(strings.Split(out[i+1], "\n"), func(s string) bool { return s == "" }), " | ") + "\n"
	}
	return text
}

var providerErrors = []error{provider.ErrRefused, provider.ErrBusy, provider.ErrUnavailable}

func failureOf(t *testing.T, lines []string) error {
	for kind := failure.Kind(1); kind < failure.Kinds; kind++ {
		if kind.Error() != lines[0] {
			continue
		}
		e := &failure.Error{Kind: kind, Reason: strings.Join(lines[1:min(2, len(lines))], "")}
		var faults document.Faults
		for _, line := range lines[min(2, len(lines)):] {
			var one document.Fault
			require.NoError(t, json.Unmarshal([]byte(line), &one))
			faults, e.Cause = append(faults, one), append(faults, one)
		}
		return failure.In("test", "", e)
	}
	i := slices.IndexFunc(providerErrors, func(err error) bool { return strings.Contains(err.Error(), lines[0]) })
	switch {
	case lines[0] == "none":
		return nil
	case i >= 0:
		return providerErrors[i]
	}
	return errors.New(lines[0])
}

func (f *fakes) all() map[string]*planned {
	if f.workflows == nil { // it is closed
		return nil
	}
	return map[string]*planned{"workflows": &f.workflows.planned, "portal": &f.portal.planned, "sessions": &f.sessions.planned, "provider": &f.provider.planned}
}

// usual are headers of most answers.
var usual = []string{"Cache-Control: no-store", "Vary: Cookie, Authorization, Authentication", "X-Content-Type-Options: nosniff", "Content-Type: application/json"}

// ask sends a request and writes its answer down.
func (f *fakes) ask(t *testing.T, r request) string {
	before := map[string]int{}
	for name, fake := range f.all() {
		before[name], fake.asked = fake.calls(), nil
	}
	base := f.kernel.Options.BasePath
	if slices.Contains(r.Headers, "Via: the operator") {
		base = ""
	}
	sent := newTestRequest(r.Method, base+r.Path, r.Body, r.Headers...)
	cut := sent.Header.Get("Cut")
	sent.RemoteAddr = strings.TrimPrefix(cmp.Or(sent.Header.Get("Peer"), "127.0.0.1:1"), "nowhere")
	sent.Host = strings.TrimPrefix(cmp.Or(sent.Header.Get("To"), sent.Host), "nowhere")
	handler := map[string]http.Handler{
		"": f.testServer, "a node": f.PeerHandler(func(*http.Request) string { return "B" }), "a stranger": f.PeerHandler(func(*http.Request) string { return "" }), "the operator": f.OperatorHandler(),
	}[sent.Header.Get("Via")]
	for _, ours := range []string{"Peer", "To", "Cut", "Via"} {
		sent.Header.Del(ours)
	}
	if f.sessions != nil {
		f.sessions.ended, f.sessions.vouched, f.sessions.address = nil, nil, netip.Addr{}
	}
	warned := func() int { return strings.Count(f.log.String(), "trustedProxies") }
	w, warnings := newRecorder(), warned()
	handler.ServeHTTP(w, sent)
	out := fmt.Sprintln(w.status)
	for _, name := range slices.Sorted(maps.Keys(w.header)) {
		line := name + ": " + strings.Join(w.header[name], "\n"+name+": ")
		switch {
		case name == "Retry-After":
			out += "Retry-After: <seconds>\n"
		case name != "Content-Length" && !slices.Contains(usual, line):
			out += hash.ReplaceAllString(strings.Replace(line, "Cookie, Authorization, Authentication, ", "", 1), "<hash>") + "\n"
		}
	}
	body := w.body.String()
	if w.header.Get("Content-Encoding") == "gzip" {
		body = f.unpacked(t, sent, w)
	}
	body = strings.ReplaceAll(body, f.kernel.IDPrefix, "<id>-")
	if cut != "" {
		body = strings.Join(regexp.MustCompile(cut).FindAllString(body, -1), "\n")
	}
	if body != "" {
		out += collapsed(body) + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if fake := f.all()[name]; fake.calls() != before[name] {
			out += strings.TrimRight("asked "+name+" "+collapsed(shown(t, fake.asked)), " ") + "\n"
		}
	}
	if warned() > warnings {
		out += "logged that a proxy is not trusted\n"
	}
	if w.status == 500 {
		out += fmt.Sprintln("logged", strings.Contains(f.log.String(), f.failed))
	}
	if fake := f.all()["sessions"]; fake != nil && fake.calls() != before["sessions"] && f.sessions.address.IsValid() {
		out += fmt.Sprintln("from", f.sessions.address)
	}
	if f.sessions != nil && len(f.sessions.ended)+len(f.sessions.vouched) > 0 {
		out += fmt.Sprintf("ended %s, vouched for %+v\n", f.sessions.ended, f.sessions.vouched)
	}
	return out
}

// unpacked is what a packed answer says: the bytes that come unpacked, and the headers that HEAD has.
func (f *fakes) unpacked(t *testing.T, sent *http.Request, packed *recorder) string {
	text := gunzip(t, packed.body.Bytes())
	length := packed.header.Get("Content-Length")
	assert.True(t, packed.body.Len() < len(text) && (length == "" || length == strconv.Itoa(packed.body.Len())), "%d bytes of %d, and Content-Length %s", packed.body.Len(), len(text), length)
	if sent.Method != http.MethodGet {
		return text
	}
	head, plain := sent.Clone(t.Context()), sent.Clone(t.Context())
	head.Method = http.MethodHead
	plain.Header.Set("Accept-Encoding", "identity")
	w := newRecorder()
	f.ServeHTTP(w, head)
	assert.Equal(t, packed.header, w.header, "HEAD")
	w = newRecorder()
	f.ServeHTTP(w, plain)
	assert.Equal(t, w.body.String(), text, "the packed bytes are not the plain ones")
	return text
}

func replyOf(size int) *message.Reply {
	reply := smallReply("leave", instanceOne, 5, true)
	padding := size - len(reply.AppendRecord(nil)) - len(`{"state":}`)
	reply.States = append(bytes.Repeat([]byte(" "), max(padding, 0)), reply.States...)
	return reply
}

// answerWith has the actors answer with records, and a list of one item, of a size.
func (f *fakes) answerWith(size int) {
	f.workflows.load = func(context.Context, *message.Load) (*message.Reply, error) { return replyOf(size), nil }
	f.workflows.send = func(_ context.Context, r *message.Event) (*message.Reply, error) {
		if r.IfMatch != nil && (len(r.IfMatch) != 1 || r.IfMatch[0] != 5) {
			return nil, fmt.Errorf("got If-Match %v: %w", r.IfMatch, failure.ErrPrecondition)
		}
		return replyOf(size), nil
	}
	f.workflows.query = func(_ context.Context, _ *query.Request, yield func([]byte) error) (*query.End, error) {
		return smallEnd(), yield(append(bytes.Repeat([]byte(" "), size), listedOne...))
	}
}

// shown is what a fake was asked: a text, or what is not zero of a request.
func shown(t *testing.T, asked any) string {
	text, ok := asked.(string)
	if ok || asked == nil {
		return text
	}
	in, err := json.Marshal(asked)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(in, &v))
	in, err = json.Marshal(withoutZeros(v))
	require.NoError(t, err)
	return string(in)
}

// withoutZeros takes away what is zero, and of a caller all but the name. A hash is its beginning.
func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["Privileges"] != nil {
			return v["ID"]
		}
		for name, value := range v {
			if v[name] = withoutZeros(value); slices.Contains([]any{nil, "", false, 0.0}, v[name]) {
				delete(v, name)
			}
		}
	case []any:
		if len(v) >= 16 {
			var hash []byte
			for _, b := range v {
				hash = append(hash, byte(b.(float64)))
			}
			return hex.EncodeToString(hash[:4])
		}
	}
	return v
}

var longRun = regexp.MustCompile(`a{40,}|x{40,}|ü{40,}|#{40,}| {40,}`)

// collapsed writes a long run of one character as the input does.
func collapsed(text string) string {
	return longRun.ReplaceAllStringFunc(text, func(run string) string {
		first := []rune(run)[0]
		return fmt.Sprintf("{%c*%d}", first, len([]rune(run)))
	})
}
