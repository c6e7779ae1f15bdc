package login

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
)

// secretOf is the secret of a link's address.
func secretOf(t *testing.T, path string) string {
	t.Helper()
	page, secret, found := strings.Cut(path, "#link=")
	require.True(t, found && page == "/login?next=%2Foperations" && len(secret) >= 26, "got %q", path)
	return secret
}

// TestALinkWorksOnceWithinItsTime: each link signs in its own person.
func TestALinkWorksOnceWithinItsTime(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	links := NewLinks(func() time.Time { return now })
	add := func(user identity.UserID) string { return secretOf(t, links.Add(user, "/operations")) }
	john, mary, late := add("john.doe"), add("mary.major"), add("late")
	wants := func(when, secret, user string) {
		t.Helper()
		got, ok := links.Take(secret)
		assert.True(t, string(got) == user && ok == (user != ""), "%s: got %q, %v, want %q", when, got, ok, user)
	}
	wants("a secret that is none", "x", "")
	wants("none", "", "")
	wants("the second link", mary, "mary.major")
	wants("the second link again", mary, "")
	now = now.Add(LinkMax - time.Nanosecond)
	wants("the first link at the end of its time", john, "john.doe")
	now = now.Add(time.Nanosecond)
	wants("a link whose time is over", late, "")
	assert.Empty(t, links.invited, "links are kept although none can be used")
}
