package admin

import (
	"errors"
	"fmt"
	"time"

	"troupe/actors/identity"
)

// The shapes of the socket. Both sides are the same program, but perhaps not of
// the same age: unknown members are refused, and the path has a version.
//
//	POST   /v1/{token,session}        creation   → created
//	GET    /v1/{token,session}                   → list
//	DELETE /v1/{token,session}/{id}              → done
//	PUT    /v1/password          newPassword     → done
//	GET    /v1/faults                            → faultList
const (
	pathToken    = "/v1/token"
	pathSession  = "/v1/session"
	pathPassword = "/v1/password"
	pathFaults   = "/v1/faults"
)

// creation asks for a token or a session.
type creation struct {
	User    string `json:"user"`
	Expires string `json:"expires,omitempty"` // as time.Duration writes it
	Note    string `json:"note,omitempty"`
}

// newPassword sets a password.
type newPassword struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// created and newPassword are the only places where a secret travels.
type created struct {
	Secret     string     `json:"secret"`
	Credential credential `json:"credential"`
}

type list struct {
	Credentials []credential `json:"credentials"`
}

// faultList is what the server would refuse of its home's definitions now.
type faultList struct {
	Faults []textFault `json:"faults"`
}

// textFault is document.Fault.
type textFault struct {
	File       string `json:"file"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Reason     string `json:"reason"`
	Suggestion string `json:"suggestion,omitempty"`
}

type done struct{}

// failure is what comes with every status but 200: a word of errors.go, and the
// text of the server's error.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

// credential is identity.Credential. Times that are zero are left out.
type credential struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	User     string    `json:"user"`
	Note     string    `json:"note,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	LastUsed time.Time `json:"lastUsed,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"`
}

func toWire(c identity.Credential) credential {
	return credential{
		ID: c.ID, Kind: c.Kind.String(), User: string(c.User), Note: c.Note,
		Created: c.Created, Expires: c.Expires, LastUsed: c.LastUsed, Revoked: c.Revoked,
	}
}

func fromWire(c credential) identity.Credential {
	kind := identity.Token
	if c.Kind == identity.Session.String() {
		kind = identity.Session
	}
	return identity.Credential{
		ID: c.ID, Kind: kind, User: identity.UserID(c.User), Note: c.Note,
		Created: c.Created, Expires: c.Expires, LastUsed: c.LastUsed, Revoked: c.Revoked,
	}
}

// parse checks a creation. Whether there is such a user is for the identity
// service to say.
func (c creation) parse() (identity.CreateCredential, error) {
	var expires time.Duration
	var err error
	if c.Expires != "" {
		if expires, err = time.ParseDuration(c.Expires); err != nil {
			return identity.CreateCredential{}, errors.Join(ErrRequest, err)
		}
	}
	if c.User == "" {
		return identity.CreateCredential{}, fmt.Errorf("%w: it names no user", ErrRequest)
	}
	return identity.CreateCredential{User: identity.UserID(c.User), Expires: expires, Note: c.Note}, nil
}

// pathOf is where the credentials of a kind are.
func pathOf(kind identity.Kind) string {
	if kind == identity.Session {
		return pathSession
	}
	return pathToken
}
