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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// merge returns a with the members of b; nil takes one away.
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
		if len(q.Get(secret)) < 22 || strings.Contains(start.Cookie, q.Get(secret)) {
			t.Errorf("%s is %q: short, or in the cookie as it is", secret, q.Get(secret))
		}
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

// set is members that differ.
type set = map[string]any

// TestTokensAreChecked goes through what is wrong with what a provider says.
func TestTokensAreChecked(t *testing.T) {
	resign := func(s string) string {
		text := s[:strings.LastIndexByte(s, '.')]
		mac := hmac.New(sha256.New, signingKey().N.Bytes())
		mac.Write([]byte(text))
		return text + "." + base64url(mac.Sum(nil))
	}
	change := func(s string) string {
		parts := strings.Split(s, ".")
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		parts[1] = base64url([]byte(strings.Replace(string(claims), `"ann"`, `"adm"`, 1)))
		return strings.Join(parts, ".")
	}
	unsign := func(s string) string { return s[:strings.LastIndexByte(s, '.')+1] }
	hash := sha256.Sum256([]byte("access"))
	past, soon := time.Now().Add(-time.Second).Unix(), time.Now().Add(time.Hour).Unix()
	tests := []struct {
		name  string
		spoil says
		query url.Values
		want  error
	}{
		{"nothing", says{}, nil, nil},
		{"another audience", says{token: set{"aud": "another"}}, nil, ErrRefused},
		{"no audience", says{token: set{"aud": nil}}, nil, ErrRefused},
		{"two audiences without a party", says{token: set{"aud": []string{clientID, "another"}}}, nil, ErrRefused},
		{"two audiences, and we are the party", says{token: set{"aud": []string{clientID, "another"}, "azp": clientID}}, nil, nil},
		{"another party", says{token: set{"azp": "another"}}, nil, ErrRefused},
		{"another nonce", says{token: set{"nonce": "another"}}, nil, ErrRefused},
		{"no nonce", says{token: set{"nonce": nil}}, nil, ErrRefused},
		{"another issuer", says{token: set{"iss": "https://evil.example"}}, nil, ErrRefused},
		{"expired", says{token: set{"exp": past}}, nil, ErrRefused},
		{"without an end", says{token: set{"exp": nil}}, nil, ErrRefused},
		{"not yet good", says{token: set{"nbf": soon}}, nil, ErrRefused},
		{"about nobody", says{token: set{"sub": nil}}, nil, ErrRefused},
		{"of another access token", says{token: set{"at_hash": base64url(make([]byte, 16))}}, nil, ErrRefused},
		{"of this access token", says{token: set{"at_hash": base64url(hash[:16])}}, nil, nil},
		{"no login name", says{token: set{"preferred_username": nil}}, nil, ErrRefused},
		{"a login name that is none", says{token: set{"preferred_username": []string{"ann"}}}, nil, ErrRefused},
		{"a login name that cannot be", says{token: set{"preferred_username": "ann\n"}}, nil, ErrRefused},
		{"unsigned", says{header: set{"alg": "none"}, forge: unsign}, nil, ErrRefused},
		{"signed with the public key as a password", says{header: set{"alg": "HS256"}, forge: resign}, nil, ErrRefused},
		{"with claims that were changed", says{forge: change}, nil, ErrRefused},
		{"with an unknown key", says{header: set{"kid": "2"}}, nil, ErrRefused},
		{"no token", says{answer: set{"id_token": nil}}, nil, ErrRefused},
		{"no token but rubbish", says{answer: set{"id_token": "x.y.z"}}, nil, ErrRefused},
		{"the code is used", says{answer: set{"error": "invalid_grant"}}, nil, ErrRefused},
		{"we are not its client", says{answer: set{"error": "invalid_client"}}, nil, ErrUnavailable},
		{"the person said no", says{}, url.Values{"error": {"access_denied"}}, ErrRefused},
		{"no code", says{}, url.Values{"code": nil}, ErrRefused},
		{"another provider's answer", says{}, url.Values{"iss": {"https://evil.example"}}, ErrRefused},
		{"an answer without an issuer, which always has one", says{discovery: set{"authorization_response_iss_parameter_supported": true}}, nil, ErrRefused},
		{"another state", says{}, url.Values{"state": {"x"}}, ErrFlow},
		{"no state", says{}, url.Values{"state": nil}, ErrFlow},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.says = test.spoil
			c, log := f.client(t, nil)
			person, err := f.followLogin(t, c, test.query)
			require.True(t, errors.Is(err, test.want) && (err == nil) == (person.User == "ann"), "got %+v, %v, want %v\n%s", person, err, test.want, log)
			assert.NotEqual(t, errors.Is(err, ErrFlow), person.Next == "/x", "next: got %q with %v", person.Next, err)
			assert.True(t, !strings.Contains(log.String(), clientSecret) && !strings.Contains(log.String(), "a-code") && !strings.Contains(log.String(), "eyJ"), log)
			assert.False(t, err != nil && !errors.Is(err, ErrFlow) && log.Len() == 0, "the log does not say why")
		})
	}
}

// TestUserInfo holds that claims which the ID token does not have are asked for,
// and count only when they are about the same person.
func TestUserInfo(t *testing.T) {
	tests := []struct {
		name  string
		info  set
		token set
		user  identity.UserID
		roles []identity.RoleID
		want  error
		asks  bool
	}{
		{"all is in the token", set{"sub": "4711"}, set{"groups": []string{"heads"}}, "ann", []identity.RoleID{"boss", "clerk"}, nil, false},
		{"groups come with the info", set{"sub": "4711", "groups": []string{"heads", "x"}}, nil, "ann", []identity.RoleID{"boss", "clerk"}, nil, true},
		{"the name comes with the info", set{"sub": "4711", "preferred_username": "bob"}, set{"preferred_username": nil}, "bob", nil, nil, true},
		{"what is signed wins", set{"sub": "4711", "preferred_username": "adm", "groups": "staff"}, nil, "ann", []identity.RoleID{"clerk"}, nil, true},
		{"whether an address is verified comes with the info", set{"sub": "4711", "email_verified": true}, set{"email": "bob@example.com", "groups": "staff"}, "bob", []identity.RoleID{"clerk"}, nil, true},
		{"another address is verified", set{"sub": "4711", "email": "evil@example.com", "email_verified": true}, set{"email": "bob@example.com", "groups": "staff"}, "", nil, ErrRefused, true},
		{"the info is about somebody else", set{"sub": "4712", "groups": "heads"}, nil, "", nil, ErrRefused, true},
		{"the info is about nobody", set{"groups": "heads"}, nil, "", nil, ErrRefused, true},
		{"the info fails", set{"error": "invalid_token"}, nil, "", nil, ErrUnavailable, true},
		{"there is no info", nil, nil, "ann", nil, nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.info, f.token = test.info, test.token
			c, log := f.client(t, func(o *Options) {
				o.RolesClaim = "groups"
				o.Roles = map[string][]identity.RoleID{"heads": {"boss", "clerk"}, "staff": {"clerk"}}
				if test.token["email"] != nil {
					o.LoginClaim, o.LoginDomain = "email", "example.com"
				}
			})
			person, err := f.followLogin(t, c, nil)
			assert.True(t, errors.Is(err, test.want) && person.User == test.user && slices.Equal(person.Roles, test.roles),
				"got %+v, %v, want %s %v, %v\n%s", person, err, test.user, test.roles, test.want, log)
			assert.Equal(t, test.asks, slices.Contains(f.asked, "/info"), "the provider was asked %q", f.asked)
		})
	}
}

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
	tests := []struct {
		name      string
		discovery set
		says      string
	}{
		{"another issuer", set{"issuer": "https://evil.example"}, "did not match"},
		{"tokens over plain HTTP", set{"token_endpoint": "http://evil.example/token"}, "neither https"},
		{"a page that is none", set{"authorization_endpoint": "javascript:alert(1)"}, "neither https"},
		{"an answer without end", set{"x": strings.Repeat("x", responseBytesMax)}, "decode"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			f.discovery = test.discovery
			c, log := f.client(t, nil)
			_, err := c.Begin(t.Context(), "/", "")
			assert.True(t, errors.Is(err, ErrUnavailable) && strings.Contains(log.String(), test.says), "got %v, want ErrUnavailable and %q\n%s", err, test.says, log)
			assert.LessOrEqual(t, log.Len(), 1000, "the log")
			f.mu.Lock()
			f.discovery = nil
			f.mu.Unlock()
			_, err = f.followLogin(t, c, nil)
			assert.NoError(t, err, "when it behaves again")
		})
	}
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

// TestClientShowsItself holds how the client tells the provider who it is.
func TestClientShowsItself(t *testing.T) {
	for _, test := range []struct {
		methods []string
		secret  string
		want    string
	}{
		{nil, clientSecret, "basic true, secret false, verifier true"},
		{[]string{"client_secret_post", "client_secret_basic"}, clientSecret, "basic true, secret false, verifier true"},
		{[]string{"client_secret_post"}, clientSecret, "basic false, secret true, verifier true"},
		{[]string{"none"}, "", "basic false, secret false, verifier true"},
		{nil, "", "basic false, secret false, verifier true"},
	} {
		f := newFake(t)
		if test.methods != nil {
			f.discovery = set{"token_endpoint_auth_methods_supported": test.methods}
		}
		c, _ := f.client(t, func(o *Options) { o.ClientSecret = test.secret })
		_, err := f.followLogin(t, c, nil)
		assert.True(t, err == nil && slices.Contains(f.asked, test.want), "%q: got %v, %q, want %s", test.methods, err, f.asked, test.want)
	}
}

func TestClaims(t *testing.T) {
	said := claims{
		"preferred_username": "ann", "email": "ann@Example.com", "email_verified": true, "upn": "ann@evil.com", "bare": "ann@",
		"groups": []any{"staff", 7, nil, "heads", "staff"}, "one": "heads", "a.b": "dotted",
		"realm_access": set{"roles": []any{"staff"}, "x.y": "z"},
	}
	for _, c := range []struct {
		claim, domain string
		want          identity.UserID
	}{
		{"preferred_username", "", "ann"},
		{"email", "example.com", "ann"},
		{"email", "", ""},
		{"email", "evil.com", ""},
		{"upn", "example.com", ""},
		{"preferred_username", "example.com", ""},
		{"bare", "example.com", ""},
		{"groups", "", ""},
		{"a.b", "", "dotted"},
		{"realm_access.x.y", "", "z"},
		{"realm_access.none", "", ""},
		{"a.c", "", ""},
		{"", "", ""},
	} {
		got, err := said.user(c.claim, c.domain)
		assert.True(t, got == c.want && (err == nil) == (c.want != ""), "%s of %q: got %q, %v, want %q", c.claim, c.domain, got, err, c.want)
	}
	for _, unverified := range []any{nil, false, "true"} {
		got, err := (claims{"email": "ann@example.com", "email_verified": unverified}).user("email", "example.com")
		assert.Error(t, err, "verified %v: got %q", unverified, got)
	}
	of := map[string][]identity.RoleID{"staff": {"clerk"}, "heads": {"boss", "clerk"}}
	for claim, want := range map[string][]identity.RoleID{
		"groups": {"boss", "clerk"}, "one": {"boss", "clerk"}, "realm_access.roles": {"clerk"}, "none": nil, "": nil, "email_verified": nil, "realm_access": nil,
	} {
		got := said.roles(claim, of)
		assert.True(t, slices.Equal(got, want), "roles of %s: got %v, want %v", claim, got, want)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Issuer: "https://login.example.com/realms/x", ClientID: "x"}
	_, err := New(good)
	assert.NoError(t, err, "good options")
	many := map[string][]identity.RoleID{}
	for i := range rolesMax + 1 {
		many[fmt.Sprint(i)] = []identity.RoleID{identity.RoleID(fmt.Sprintf("role%d", i))}
	}
	for name, spoil := range map[string]func(o *Options){
		"no issuer":                   func(o *Options) { o.Issuer = "" },
		"plain HTTP":                  func(o *Options) { o.Issuer = "http://login.example.com" },
		"a name that looks local":     func(o *Options) { o.Issuer = "http://localhost.example.com" },
		"a query":                     func(o *Options) { o.Issuer += "?x" },
		"a password in it":            func(o *Options) { o.Issuer = "https://a:b@login.example.com" },
		"no client":                   func(o *Options) { o.ClientID = "" },
		"a callback over plain HTTP":  func(o *Options) { o.RedirectURL = "http://flows.example.com/login/oidc/callback" },
		"roles without a claim":       func(o *Options) { o.Roles = map[string][]identity.RoleID{"x": {"y"}} },
		"a role that cannot be":       func(o *Options) { o.RolesClaim, o.Roles = "g", map[string][]identity.RoleID{"x": {"a b"}} },
		"more roles than one can use": func(o *Options) { o.RolesClaim, o.Roles = "g", many },
	} {
		o := good
		spoil(&o)
		_, err := New(o)
		assert.Error(t, err, "%s: got no error", name)
	}
	for _, issuer := range []string{"http://127.0.0.1:8080", "http://[::1]:1/x", "http://localhost"} {
		_, err := New(Options{Issuer: issuer, ClientID: "x"})
		assert.NoError(t, err, issuer)
	}
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
		if got, ok := s.open(base64.RawURLEncoding.EncodeToString(raw)); ok != (flip == 0) {
			t.Errorf("byte %d changed by %#x: got %+v, %v", at%uint(len(raw)), flip, got, ok)
		}
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
