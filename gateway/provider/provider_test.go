package provider

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"troupe/actors/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	clientID     = "troupe"
	clientSecret = "an old oak"
)

var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// fakeProvider says what a test wants it to say, however wrong. It holds what no
// real provider can be made to do; cmd/internal/endtoend has a real one.
type fakeProvider struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	says
	nonce string
	asked []string // paths, and how the client has shown who it is
}

// says is what a provider says that a good one would not, or need not; a member that
// is nil is taken away.
type says struct {
	discovery set
	token     set // claims of the ID token
	header    set // of the ID token
	forge     func(signed string) string
	answer    set // of the token endpoint
	info      set // of the user info endpoint, all of it; nil: it does not exist
}

func newFake(t *testing.T) *fakeProvider {
	t.Helper()
	f := &fakeProvider{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", f.serve(func(*http.Request) any {
		d := set{
			"issuer": f.URL, "authorization_endpoint": f.URL + "/auth", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		}
		if f.info != nil {
			d["userinfo_endpoint"] = f.URL + "/info"
		}
		return merge(d, f.discovery)
	}))
	mux.HandleFunc("/keys", f.serve(func(*http.Request) any {
		return set{"keys": []any{set{
			"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": base64url(signingKey().N.Bytes()), "e": "AQAB",
		}}}
	}))
	mux.HandleFunc("/token", f.serve(func(r *http.Request) any {
		_, _, basic := r.BasicAuth()
		f.asked = append(f.asked, fmt.Sprintf("basic %v, secret %v, verifier %v", basic, r.FormValue("client_secret") != "", len(r.FormValue("code_verifier")) >= 43))
		return merge(set{"access_token": "access", "token_type": "Bearer", "expires_in": 60, "id_token": f.idToken()}, f.answer)
	}))
	mux.HandleFunc("/info", f.serve(func(*http.Request) any { return f.info }))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// serve answers with JSON, or as a test says.
func (f *fakeProvider) serve(answer func(*http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked = append(f.asked, r.URL.Path)
		switch a := answer(r).(type) {
		case http.HandlerFunc:
			a(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			if m, ok := a.(set); ok && m["error"] != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			_ = json.NewEncoder(w).Encode(a)
		}
	}
}

func merge(a, b set) set {
	for name, value := range b {
		if a[name] = value; value == nil {
			delete(a, name)
		}
	}
	return a
}

func (f *fakeProvider) idToken() string {
	now := time.Now()
	claims, _ := json.Marshal(merge(set{
		"iss": f.URL, "aud": clientID, "sub": "4711", "nonce": f.nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"preferred_username": "ann",
	}, f.token))
	header, _ := json.Marshal(merge(set{"alg": "RS256", "kid": "1", "typ": "JWT"}, f.header))
	text := base64url(header) + "." + base64url(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, signingKey(), crypto.SHA256, sum[:])
	assert.NoError(f.t, err)
	text += "." + base64url(signature)
	if f.forge != nil {
		text = f.forge(text)
	}
	return text
}

// client is one that trusts the fake, with the log that it writes.
func (f *fakeProvider) client(t *testing.T, change func(*Options)) (*Client, *strings.Builder) {
	t.Helper()
	log := new(strings.Builder)
	o := Options{Issuer: f.URL, ClientID: clientID, ClientSecret: clientSecret, Log: zerolog.New(log)}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	c.http.Timeout, c.beginMax, c.finishMax = time.Hour, time.Hour, time.Hour // a machine that stands still is not a provider that is silent
	return c, log
}

// followLogin goes the way of a person whom the provider recognises. extra are
// parameters of the callback.
func (f *fakeProvider) followLogin(t *testing.T, c *Client, extra url.Values) (Person, error) {
	t.Helper()
	cookie, query, err := f.begin(t, c)
	if err != nil {
		return Person{}, err
	}
	maps.Copy(query, extra)
	return c.Finish(t.Context(), cookie, query)
}

// begin begins a sign-in and returns its cookie and the parameters with which the
// provider sends the person back.
func (f *fakeProvider) begin(t *testing.T, c *Client) (cookie string, query url.Values, err error) {
	t.Helper()
	start, err := c.Begin(t.Context(), "/x", "http://127.0.0.1:1/login/oidc/callback")
	if err != nil {
		return "", nil, err
	}
	page, err := url.Parse(start.Location)
	require.NoError(t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nonce = page.Query().Get("nonce")
	return start.Cookie, url.Values{"state": {page.Query().Get("state")}, "code": {"a-code"}}, nil
}

func TestSignIn(t *testing.T) {
	f := newFake(t)
	c, log := f.client(t, nil)
	start, err := c.Begin(t.Context(), "/x", "http://127.0.0.1:1/back")
	require.NoError(t, err)
	page, err := url.Parse(start.Location)
	require.NoError(t, err)
	q := page.Query()
	for name, want := range map[string]string{
		"client_id": clientID, "redirect_uri": "http://127.0.0.1:1/back", "response_type": "code", "scope": "openid profile email", "code_challenge_method": "S256",
	} {
		assert.Equal(t, want, q.Get(name), name)
	}
	for _, secret := range []string{"state", "nonce", "code_challenge"} {
		assert.False(t, len(q.Get(secret)) < 22 || strings.Contains(start.Cookie, q.Get(secret)), "%s is %q: short, or in the cookie as it is", secret, q.Get(secret))
	}
	assert.True(t, strings.Trim(start.Cookie, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == "" && len(start.Cookie) >= 43, start.Cookie)
	again, err := c.Begin(t.Context(), "/x", "")
	assert.True(t, err == nil && again.Location != start.Location && again.Cookie != start.Cookie, "the second sign-in is as the first: %v", err)
	person, err := f.followLogin(t, c, nil)
	assert.True(t, err == nil && person.User == "ann" && len(person.Roles) == 0 && person.Next == "/x", "got %+v, %v\n%s", person, err, log)
	want := []string{"/.well-known/openid-configuration", "/token", "basic true, secret false, verifier true", "/keys"}
	got := f.asked
	assert.True(t, len(got) == 4 && got[0] == want[0] && slices.Contains(got, want[2]), "the provider was asked %q, want %q", got, want)
	assert.Equal(t, "127.0.0.1", c.Name(), "name")
}

type set = map[string]any

// TestFlowEnds holds that a sign-in is good for ten minutes, and only in the
// process in which it was begun.
func TestFlowEnds(t *testing.T) {
	f := newFake(t)
	var offset atomic.Int64
	c, _ := f.client(t, func(o *Options) {
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	})
	other, _ := f.client(t, nil)
	f.token = set{"exp": time.Now().Add(time.Hour).Unix()}
	for age, ends := range map[time.Duration]bool{FlowMax - time.Minute: false, FlowMax: true, -30 * time.Second: false, -time.Hour: true} {
		offset.Store(0)
		cookie, query, err := f.begin(t, c)
		require.NoError(t, err)
		_, err = other.Finish(t.Context(), cookie, query)
		assert.ErrorIs(t, err, ErrFlow, "another process")
		offset.Store(int64(age))
		_, err = c.Finish(t.Context(), cookie, query)
		assert.Equal(t, ends, errors.Is(err, ErrFlow), "after %v: got %v", age, err)
	}
	shared := func(o *Options) { o.Key = func() ([]byte, error) { return []byte(strings.Repeat("k", 32)), nil } }
	one, _ := f.client(t, shared)
	two, _ := f.client(t, shared)
	cookie, query, err := f.begin(t, one)
	if err == nil {
		_, err = two.Finish(t.Context(), cookie, query)
	}
	assert.NoError(t, err, "another node with the same key")
	for _, cookie := range []string{"", "x", strings.Repeat("A", 100), "ä"} {
		_, err := c.Finish(t.Context(), cookie, url.Values{})
		assert.ErrorIs(t, err, ErrFlow, "cookie %q", cookie)
	}
}

// TestProviderMisbehaves holds the bounds on what a provider can do to us.
func TestProviderMisbehaves(t *testing.T) {
	t.Run("it sends us elsewhere", func(t *testing.T) {
		f := newFake(t)
		away := httptest.NewServer(http.RedirectHandler(f.URL+"/token", http.StatusTemporaryRedirect))
		defer away.Close()
		f.discovery = set{"token_endpoint": away.URL + "/token"}
		c, log := f.client(t, nil)
		_, err := f.followLogin(t, c, nil)
		assert.True(t, errors.Is(err, ErrUnavailable) && !slices.Contains(f.asked, "/token"), "got %v, and asked %q, want ErrUnavailable\n%s", err, f.asked, log)
	})
	t.Run("too many wait for it", func(t *testing.T) {
		c, _ := newFake(t).client(t, nil)
		for range requestsMax {
			_, err := c.acquireSlot()
			require.NoError(t, err)
		}
		_, err := c.Begin(t.Context(), "/", "")
		assert.ErrorIs(t, err, ErrBusy, "one more than %d", requestsMax)
	})
	t.Run("it does not answer before the caller goes", func(t *testing.T) {
		gone, goes := context.WithCancel(t.Context())
		slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			goes()
			<-r.Context().Done()
		}))
		defer slow.Close()
		c, _ := newFake(t).client(t, func(o *Options) { o.Issuer = slow.URL })
		_, err := c.Begin(gone, "/", "")
		assert.True(t, errors.Is(err, ErrUnavailable) && len(c.slots) == 0, "got %v, and %d slots taken, want ErrUnavailable", err, len(c.slots))
	})
}

func TestManyRoles(t *testing.T) {
	many := map[string][]identity.RoleID{}
	for i := range rolesMax + 1 {
		many[fmt.Sprint(i)] = []identity.RoleID{identity.RoleID(fmt.Sprintf("role%d", i))}
	}
	_, err := New(Options{Issuer: "https://login.example.com", ClientID: "x", RolesClaim: "g", Roles: many})
	assert.ErrorContains(t, err, "roles", "more roles than one can use")
}

// TestNoKey: a sign-in waits for a key that all nodes have, and is not refused.
func TestNoKey(t *testing.T) {
	f := newFake(t)
	for name, key := range map[string]func() ([]byte, error){
		"not made yet": func() ([]byte, error) { return nil, errors.New("none") },
		"too short":    func() ([]byte, error) { return make([]byte, 31), nil },
	} {
		c, _ := f.client(t, func(o *Options) { o.Key = key })
		_, err := c.Begin(t.Context(), "/x", "http://127.0.0.1:1/back")
		_, finishErr := c.Finish(t.Context(), "x", url.Values{})
		assert.True(t, errors.Is(err, ErrUnavailable) && errors.Is(finishErr, ErrUnavailable), "%v %v %v", name, err, finishErr)
	}
}

// FuzzOpen holds that no text is a flow, and that what was sealed is one until
// one bit of it changes. Every process of a run seals for itself: no seed is
// sealed.
func FuzzOpen(f *testing.F) {
	s, err := newSealer(make([]byte, 32))
	require.NoError(f, err)
	sealed, err := s.seal(&flow{State: "s", Next: "/x"})
	require.NoError(f, err)
	f.Add("", uint(0), byte(1))
	f.Add(strings.Repeat("A", 80), uint(40), byte(0x80))
	f.Fuzz(func(t *testing.T, text string, at uint, flip byte) {
		got, ok := s.open(text)
		assert.False(t, ok, "%q is a flow: %+v", text, got)
		raw, err := base64.RawURLEncoding.DecodeString(sealed)
		require.NoError(t, err)
		raw[at%uint(len(raw))] ^= flip
		got, ok = s.open(base64.RawURLEncoding.EncodeToString(raw))
		assert.Equal(t, flip == 0, ok, "byte %d changed by %#x: got %+v, %v", at%uint(len(raw)), flip, got, ok)
	})
}

// FuzzClaims holds that no claims make user or roles panic, or give a login name
// or roles that cannot be.
func FuzzClaims(f *testing.F) {
	f.Add(`{"a":{"b":["x"]},"email":"x@y","email_verified":true}`, "a.b", "y")
	f.Add(`{"a.b":"x"}`, "a.b", "")
	f.Add(`{"a":null}`, "a.b.c", "")
	of := map[string][]identity.RoleID{"x": {"clerk"}, "": {"boss"}}
	f.Fuzz(func(t *testing.T, text, name, domain string) {
		var said claims
		if json.Unmarshal([]byte(text), &said) != nil {
			return
		}
		user, err := said.user(name, domain)
		assert.True(t, (err == nil) == (user != "") && !strings.ContainsAny(string(user), "@ \n/"), "got %q, %v", user, err)
		roles := said.roles(name, of)
		assert.LessOrEqual(t, len(roles), 2, "got %v", roles)
	})
}

// TestSignIns plays testdata/signin.
//
//	sign-in   with a provider that says what stands there (discovery, token, header, answer, info: members in JSON; forge: an ID token),
//	          and sends the person back with a query, to a client with options: who came, what was asked, and what the log says;
//	          after a discovery that is wrong then whether the same client signs somebody in when it is right
//	claims    whom and which roles claims name: the claims, and lines of claim and domain
//	options   what is wrong with options
func TestSignIns(t *testing.T) {
	datadriven.Walk(t, "testdata/signin", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			lines := strings.Split(d.Input, "\n")
			switch d.Cmd {
			case "claims":
				return namesIn(t, lines)
			case "options":
				out := ""
				for _, line := range lines {
					o := Options{Issuer: "https://login.example.com/realms/x", ClientID: "x"}
					require.NoError(t, json.Unmarshal([]byte(line), &o))
					_, err := New(o)
					out += fmt.Sprintf("%s => %v\n", line, err)
				}
				return out
			}
			return signIn(t, lines)
		})
	})
}

// forgeries make an ID token that is not one.
var forgeries = map[string]func(string) string{
	"signed with the public key": func(s string) string {
		text := s[:strings.LastIndexByte(s, '.')]
		mac := hmac.New(sha256.New, signingKey().N.Bytes())
		mac.Write([]byte(text))
		return text + "." + base64url(mac.Sum(nil))
	},
	"changed": func(s string) string {
		parts := strings.Split(s, ".")
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		parts[1] = base64url([]byte(strings.Replace(string(claims), `"ann"`, `"adm"`, 1)))
		return strings.Join(parts, ".")
	},
	"unsigned": func(s string) string { return s[:strings.LastIndexByte(s, '.')+1] },
}

func signIn(t *testing.T, lines []string) string {
	f := newFake(t)
	hash := sha256.Sum256([]byte("access"))
	values := strings.NewReplacer("<past>", unix(-time.Second), "<soon>", unix(time.Hour), "<hash>", base64url(hash[:16]), "<other hash>", base64url(make([]byte, 16)), "<long>", strings.Repeat("x", responseBytesMax))
	var query url.Values
	options := "{}"
	for _, line := range lines {
		what, text, _ := strings.Cut(values.Replace(line), " ")
		switch into := map[string]*set{"discovery": &f.discovery, "token": &f.token, "header": &f.header, "answer": &f.answer, "info": &f.info}[what]; {
		case into != nil:
			require.NoError(t, json.Unmarshal([]byte(text), into))
		case what == "forge":
			f.forge = forgeries[text]
		case what == "query":
			query, _ = url.ParseQuery(text)
			for name := range query {
				if query.Get(name) == "none" {
					query[name] = nil
				}
			}
		case what == "options":
			options = text
		}
	}
	c, log := f.client(t, func(o *Options) { require.NoError(t, json.Unmarshal([]byte(options), o)) })
	came := func(query url.Values) string {
		person, err := f.followLogin(t, c, query)
		assert.Equal(t, err == nil, person.User != "")
		if err == nil {
			return fmt.Sprintf("%s %v, to %s\n", person.User, person.Roles, person.Next)
		}
		text := fmt.Sprintf("error: %v, to %q\n", err, person.Next)
		assert.True(t, errors.Is(err, ErrRefused) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFlow), text)
		return text
	}
	out := came(query) + "asked " + strings.Join(f.asked, ", ") + "\n" + log.String()
	assert.Less(t, log.Len(), 1000)
	assert.NotRegexp(t, clientSecret+`|a-code|eyJ`, log)
	if f.discovery != nil {
		f.discovery = nil
		out += "then " + came(nil)
	}
	return moment.ReplaceAllString(strings.ReplaceAll(out, f.URL, "<provider>"), "<time>")
}

var moment = regexp.MustCompile(`20\d\d-\d\d-\d\d [^a-z)"]*[A-Z]{3}( m=\S+)?`)

func unix(from time.Duration) string { return strconv.FormatInt(time.Now().Add(from).Unix(), 10) }

func namesIn(t *testing.T, lines []string) (out string) {
	var said claims
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &said))
	of := map[string][]identity.RoleID{"staff": {"clerk"}, "heads": {"boss", "clerk"}}
	for _, line := range lines[1:] {
		claim, domain, _ := strings.Cut(line, " of ")
		user, err := said.user(claim, domain)
		out += fmt.Sprintf("%s => %q %v, roles %v\n", line, user, err, said.roles(claim, of))
	}
	return out
}
