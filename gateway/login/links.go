package login

import (
	"crypto/rand"
	"crypto/sha256"
	"net/url"
	"sync"
	"time"

	"troupe/actors/identity"
)

// LinkMax is how long a link can be used.
const LinkMax = 10 * time.Minute

// Links are secrets that each sign one person in, once. They are in memory only: the next
// start of the program knows none of them.
type Links struct {
	clock func() time.Time

	mu      sync.Mutex
	invited map[[sha256.Size]byte]invitation // by the hash of the secret
}

// invitation is what a link is good for.
type invitation struct {
	user identity.UserID
	ends time.Time
}

// NewLinks returns no links. clock tells the time; nil is time.Now.
func NewLinks(clock func() time.Time) *Links {
	if clock == nil {
		clock = time.Now
	}
	return &Links{clock: clock, invited: map[[sha256.Size]byte]invitation{}}
}

// Add makes a link for a person, and returns what follows the base path in its address. The
// secret is in the fragment, which browsers send to nobody: it is in no log and no Referer. The
// page of the link spends it with a request of its own, so that a program that looks at
// addresses, such as a preview, does not. next is where the page leads; empty: to the start page.
func (l *Links) Add(user identity.UserID, next string) string {
	secret := rand.Text()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.invited[sha256.Sum256([]byte(secret))] = invitation{user, l.clock().Add(LinkMax)}
	page := "/login"
	if next != "" {
		page += "?next=" + url.QueryEscape(next)
	}
	return page + "#link=" + secret
}

// Take spends a link, and returns whom it signs in. A link that nobody made, that was used, or
// whose time is over is false.
func (l *Links) Take(secret string) (identity.UserID, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	for hash, i := range l.invited {
		if !now.Before(i.ends) {
			delete(l.invited, hash)
		}
	}
	hash := sha256.Sum256([]byte(secret))
	i, ok := l.invited[hash]
	delete(l.invited, hash)
	return i.user, ok
}
