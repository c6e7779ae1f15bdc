package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/gateway/login"
)

// TestDestination plays testdata/login/destination.txt: addresses as Go quotes them, and what is behind each.
func TestDestination(t *testing.T) {
	datadriven.RunTest(t, "testdata/login/destination.txt", func(t *testing.T, d *datadriven.TestData) (out string) {
		base := ""
		for _, arg := range d.CmdArgs {
			base = arg.Key
		}
		for line := range strings.SplitSeq(d.Input, "\n") {
			quoted, err := strconv.QuotedPrefix(line)
			require.NoError(t, err, line)
			asked, err := strconv.Unquote(quoted)
			require.NoError(t, err, line)
			long := strings.NewReplacer("{longest}", strings.Repeat("x", login.DestinationBytesMax-1), "{too long}", strings.Repeat("x", login.DestinationBytesMax))
			next := login.Destination(base, long.Replace(asked))
			if next == long.Replace(asked) {
				next = "kept"
			}
			out += line + " => " + next + "\n"
		}
		return out
	})
}

// FuzzDestination holds the rule as a browser sees it: resolved against the page, the
// answer is on the same server.
func FuzzDestination(f *testing.F) {
	for _, seed := range []string{"/x", "//x", "/\\x", "/\t/x", "https://x", "/..//x", "/%2e%2e/x", "/x?y#z", "x:y", "/@x:1"} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	// What a browser takes off before it reads an address (WHATWG URL).
	stripped := strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/")
	f.Fuzz(func(t *testing.T, asked string, based bool) {
		base := ""
		if based {
			base = "/platform"
		}
		next := login.Destination(base, asked)
		require.Equal(t, next, login.Destination(base, next), asked)
		at, _ := url.Parse("https://ours.example" + base + "/login")
		to, err := at.Parse(stripped.Replace(strings.Trim(next, "\x00 ")))
		assert.True(t, err == nil && to.Scheme == "https" && to.Host == "ours.example" && to.User == nil, "%q leads to %v, %v", asked, to, err)
		assert.False(t, to != nil && to.Path != base && !strings.HasPrefix(to.Path, base+"/"), "%q leads out of the base path, to %v", asked, to)
		assert.False(t, strings.ContainsAny(next, "\r\n\t \\"), "%q gives %q", asked, next)
	})
}

// TestLoginPage plays testdata/login/page.txt: the page for options. It has neither script nor style in it, what it asks for is ours, and what the request
// says is only text.
func TestLoginPage(t *testing.T) {
	// NB: a positive tabindex or an element that is none of a form's would break the order of the keyboard.
	foreign := regexp.MustCompile(`https?:|"//|<[^>]*\son[a-z]+=|\sstyle=|<style|javascript:|tabindex|\{\{`)
	datadriven.RunTest(t, "testdata/login/page.txt", func(t *testing.T, d *datadriven.TestData) string {
		var o login.Options
		require.NoError(t, json.Unmarshal([]byte(d.Input), &o))
		page := string(login.Page(o))
		assert.Empty(t, foreign.FindString(page))
		assert.Equal(t, 1, strings.Count(page, "<script"))
		return page
	})
	for name, text := range map[string]string{"style": string(login.Style()), "script": string(login.Script())} {
		found := regexp.MustCompile(`https?:|//[a-z]|url\(|@import|\beval\b|innerHTML|document\.write|\{\{`).FindString(text)
		assert.True(t, found == "" && text != "", "the %s has %q in it", name, found)
	}
}

// TestLoginScript holds that every element which the script looks for is in the page,
// and that it takes the addresses from there.
func TestLoginScript(t *testing.T) {
	page, script := string(login.Page(login.Options{})), string(login.Script())
	found := regexp.MustCompile(`getElementById\("([^"]+)"\)`).FindAllStringSubmatch(script, -1)
	for _, id := range found {
		assert.Equal(t, 1, strings.Count(page, ` id="`+id[1]+`"`), "the page has no single element %q", id[1])
	}
	assert.True(t, len(found) == 6 && strings.Contains(script, "fetch(form.dataset.session") && strings.Contains(script, "location.replace(form.dataset.next)"),
		"the script looks for %d elements, or takes its addresses from elsewhere", len(found))
}

// TestLoginLanguages: both languages have the same texts, and none is left out of the page.
func TestLoginLanguages(t *testing.T) {
	page := func(l login.Language, failed int) string {
		return string(login.Page(login.Options{Provider: "X", Language: l, Failed: failed}))
	}
	texts := regexp.MustCompile(`"[^"]*"|>[^<]*<`)
	german := texts.FindAllString(page(login.German, 400), -1)
	for i, english := range texts.FindAllString(page(login.English, 400), -1) {
		assert.True(t, (len(german[i]) > 2) == (len(english) > 2) && strings.Contains(english, "#") == strings.Contains(german[i], "#"), "got %q for %q", german[i], english)
	}
	for status := 400; status < 600; status++ {
		other := page(login.English, status) != page(login.English, 599)
		assert.Equal(t, other, page(login.German, status) != page(login.German, 599), "%d has no text of its own in one language", status)
	}
	for line, want := range map[string]login.Language{"": login.English, "fr": login.English, "de": login.German, "fr,DE-at,en": login.German, "en-GB,de": login.English, "deutsch": login.English} {
		assert.Equal(t, want, login.Speak(strings.Split(line, ",")), line)
	}
}

func TestLoginPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "connect-src 'self'"} {
		assert.Contains(t, login.Policy+";", want+";", "the policy lacks %s", want)
	}
	assert.True(t, !strings.Contains(login.Policy, "unsafe") && !strings.Contains(login.Policy, "*") && !strings.Contains(login.Policy, "http"), "the policy %q is not strict", login.Policy)
}

func secretOf(t *testing.T, path string) string {
	t.Helper()
	page, secret, found := strings.Cut(path, "#link=")
	require.True(t, found && page == "/login?next=%2Foperations" && len(secret) >= 26, "got %q", path)
	return secret
}

// TestALinkWorksOnceWithinItsTime: each link signs in its own person.
func TestALinkWorksOnceWithinItsTime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	links := login.NewLinks(func() time.Time { return now })
	add := func(user identity.UserID) string { return secretOf(t, links.Add(user, "/operations")) }
	john, mary, late := add("john.doe"), add("mary.major"), add("late")
	add("nobody.comes")
	assert.Contains(t, fmt.Sprint(links), "nobody.comes")
	wants := func(when, secret, user string) {
		t.Helper()
		got, ok := links.Take(secret)
		assert.True(t, string(got) == user && ok == (user != ""), "%s: got %q, %v, want %q", when, got, ok, user)
	}
	wants("a secret that is none", "x", "")
	wants("none", "", "")
	wants("the second link", mary, "mary.major")
	wants("the second link again", mary, "")
	now = now.Add(login.LinkMax - time.Nanosecond)
	wants("the first link at the end of its time", john, "john.doe")
	now = now.Add(time.Nanosecond)
	wants("a link whose time is over", late, "")
	assert.NotContains(t, fmt.Sprint(links), "nobody.comes", "links are kept although none can be used")
}
