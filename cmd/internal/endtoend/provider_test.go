//go:build openid

package endtoend

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

const (
	clientSecret   = "a secret of two programs"
	personPassword = "a lake, 1907"
)

// newProvided starts a provider, and a program that trusts it. The provider knows ann (in the groups heads and more), bob and eve.
func newProvided(t *testing.T) *program {
	t.Helper()
	var people []string
	for i, person := range []string{`"Username": "ann", "groups": ["heads", "more"]`, `"Username": "bob"`, `"Username": "eve", "groups": ["heads"]`} {
		people = append(people, fmt.Sprintf(`"%d": {"ID": "%d", %s, "Password": %q}`, i, i, person, personPassword))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"people.json": "{" + strings.Join(people, ",") + "}", "secret": clientSecret + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issuer := startProvider(t, filepath.Join(dir, "secret"), filepath.Join(dir, "people.json"))
	t.Setenv("TROUPE_OIDC_CLIENT_SECRET_FILE", filepath.Join(dir, "secret"))
	return start(t, newHome(t, map[string]string{
		"workflows/plain.yaml": plainFlow,
		"troupe.yaml": "oidc:\n  issuer: " + issuer + "\n  name: Staff & co\n  clientId: troupe\n" +
			"  rolesClaim: groups\n  roles:\n    heads: [approver]\n    nobody: clerk\n",
	}))
}

// buildProvider builds the provider, which is a module of its own.
func buildProvider(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "openid")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = "../openid"
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "build the provider, %s", out)
	return program
}

func startProvider(t *testing.T, secret, people string) (issuer string) {
	t.Helper()
	cmd := exec.Command(buildProvider(t), secret, people)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the provider does not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// browser keeps cookies and follows nothing by itself.
type browser struct {
	t    testing.TB
	http *http.Client
	root string // of the program
}

func newBrowser(t testing.TB, p *program) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	address, err := p.log.listening()
	require.NoError(t, err)
	transport := &http.Transport{MaxConnsPerHost: 2}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t, &http.Client{
		Jar: jar, Transport: transport, Timeout: wiretest.AnswerMax,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, "http://" + address + p.Base}
}

func (b *browser) get(address string) (answer, string) {
	b.t.Helper()
	return b.do(http.MethodGet, address, nil)
}

func (b *browser) do(method, address string, form url.Values) (answer, string) {
	b.t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.http.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, address, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	next := ""
	if location := res.Header.Get("Location"); location != "" {
		to, err := r.URL.Parse(location)
		require.NoError(b.t, err)
		next = to.String()
	}
	return answer{Status: res.StatusCode, Header: res.Header, Body: string(body)}, next
}

func (b *browser) begin(next string) string {
	b.t.Helper()
	a, page := b.get(b.root + "/login/oidc?next=" + url.QueryEscape(next))
	if a.Status != http.StatusSeeOther || page == "" {
		b.t.Fatalf("begin: got %d %s", a.Status, a.Body)
	}
	return page
}

var requestID = regexp.MustCompile(`authRequestID=([^&]+)`)

// recognise signs in at the provider's page and returns the callback that it
// sends the browser to.
func (b *browser) recognise(page, person string) string {
	b.t.Helper()
	a, form := b.get(page)
	id := requestID.FindStringSubmatch(form)
	if id == nil {
		b.t.Fatalf("the provider: got %d %s", a.Status, a.Body)
	}
	a, back := b.do(http.MethodPost, form, url.Values{"id": {id[1]}, "username": {person}, "password": {personPassword}})
	if back == "" {
		b.t.Fatalf("the provider's form: got %d %s", a.Status, a.Body)
	}
	a, callback := b.get(back)
	if !strings.HasPrefix(callback, b.root+"/login/oidc/callback?") {
		b.t.Fatalf("the provider sends the browser to %q: %d %s", callback, a.Status, a.Body)
	}
	return callback
}

func (b *browser) cookies(address string) map[string]string {
	found := map[string]string{}
	u, _ := url.Parse(address)
	for _, c := range b.http.Jar.Cookies(u) {
		found[c.Name] = c.Value
	}
	return found
}

func (b *browser) whoAmI() answer {
	b.t.Helper()
	a, _ := b.get(b.root + "/session")
	return a
}

func (b *browser) signsIn(callback string) {
	b.t.Helper()
	if a, _ := b.get(callback); a.Status != http.StatusSeeOther {
		b.t.Fatalf("got %d %s", a.Status, a.Body)
	}
}

func parameter(t testing.TB, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Query().Get(name) == "" {
		t.Fatalf("%s has no %s: %v", address, name, err)
	}
	return u.Query().Get(name)
}

// TestProviderSignsIn goes the whole way with a provider of its own process: a
// session with a new id, the roles of its groups beside those of identity.yaml,
// for as long as the session lasts.
func TestProviderSignsIn(t *testing.T) {
	p := newProvided(t)
	b := newBrowser(t, p)
	a, _ := b.get(b.root + "/login?next=/x")
	if !strings.Contains(a.Body, `<a href="/login/oidc?next=%2Fx">Sign in with Staff &amp; co</a>`) {
		t.Errorf("the page has no button: %s", a.Body)
	}
	page := b.begin("/x?a=b")
	if parameter(t, page, "code_challenge_method") != "S256" || parameter(t, page, "scope") != "openid profile email" || len(parameter(t, page, "nonce")) < 22 {
		t.Errorf("asks the provider %s", page)
	}
	callback := b.recognise(page, "ann")
	a, next := b.get(callback + "&session_state=anything")
	if a.Status != http.StatusSeeOther || next != b.root+"/x?a=b" {
		t.Fatalf("callback: got %d to %q: %s", a.Status, next, a.Body)
	}
	const want = `{"user":"ann","name":"Ann","roles":["approver","clerk"],"privileges":["mod-form"]}`
	if got := b.whoAmI(); got.Body != want {
		t.Errorf("got %s, want %s", got.Body, want)
	}
	first := b.cookies(b.root + "/login/oidc/callback")
	if len(first) != 1 || len(first["session"]) < 43 {
		t.Errorf("the browser is left with the cookies %v, want the session alone", first)
	}
	// The next sign-in has another id and ends the first one.
	b.signsIn(b.recognise(b.begin("/"), "bob"))
	second := b.cookies(b.root)["session"]
	if second == first["session"] || p.withCookie(first["session"]).Get(t, "/session").Status != http.StatusUnauthorized {
		t.Error("the first session goes on")
	}
	if got := b.whoAmI(); !strings.Contains(got.Body, `"user":"bob","name":"Bob","roles":["approver"]`) {
		t.Errorf("got %s, want bob without more roles", got.Body)
	}
	// Roles survive a restart, and follow identity.yaml.
	b.signsIn(b.recognise(b.begin("/"), "eve"))
	eve := b.cookies(b.root)["session"]
	p.stop()
	p = start(t, p.home)
	if got := p.withCookie(eve).Get(t, "/session"); got.Body != `{"user":"eve","name":"Eve","roles":["approver"],"privileges":[]}` {
		t.Errorf("after a restart: got %s", got.Body)
	}
	p.home.write("identity.yaml", strings.Replace(wiretest.People, "name: Approver, privileges: []", "name: Approver, privileges: [mod-admin]", 1))
	p.await("the role to have a privilege", func() bool {
		return strings.Contains(p.withCookie(eve).Get(t, "/session").Body, `"privileges":["mod-admin"]`)
	})
	p.stop()
	if strings.Contains(p.log.all(), clientSecret) {
		t.Error("the log holds a secret")
	}
}
