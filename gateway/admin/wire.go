package admin

import (
	"errors"
	"fmt"
	"time"

	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/statemachine/document"
)

// The messages of the socket. Both sides are the same program, but perhaps in
// different versions: unknown members are refused, and the path has a version.
//
//	POST   /v1/{token,session}        createRequest    → createReply
//	GET    /v1/{token,session}                         → credentialList
//	DELETE /v1/{token,session}/{id}                    → emptyReply
//	PUT    /v1/password               passwordRequest  → emptyReply
//	GET    /v1/faults                                  → faultList
//	PUT    /v1/home[?dryRun=true]     a tar archive    → publishReply
//	GET    /v1/actors                                  → actors.Branch
//	GET    /v1/cluster                                 → cluster.Status
//	POST   /v1/cluster/invite         inviteRequest    → inviteReply
//	DELETE /v1/cluster/nodes/{id}[?lost=true]          → emptyReply
const (
	pathToken    = "/v1/token"
	pathSession  = "/v1/session"
	pathPassword = "/v1/password"
	pathFaults   = "/v1/faults"
	pathHome     = "/v1/home"
	pathActors   = "/v1/actors"
	pathCluster  = "/v1/cluster"
	pathInvite   = pathCluster + "/invite"
	pathNodes    = pathCluster + "/nodes"
)

type createRequest struct {
	User    string `json:"user"`
	Expires string `json:"expires,omitempty"` // as time.Duration writes it
	Note    string `json:"note,omitempty"`
}

type passwordRequest struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// createReply and passwordRequest are the only messages with a secret.
type createReply struct {
	Secret     string     `json:"secret"`
	Credential credential `json:"credential"`
}

type credentialList struct {
	Credentials []credential `json:"credentials"`
}

// faultList has the faults for which the server would refuse the definitions in its
// home now, and what else it says of them.
type faultList struct {
	Faults   []api.FileFault `json:"faults"`
	Warnings []api.FileFault `json:"warnings,omitempty"`
}

type publishReply struct {
	api.PublishedHome
	Faults []api.FileFault `json:"faults,omitempty"`
}

func faultsToWire(faults document.Faults) []api.FileFault {
	wire := make([]api.FileFault, 0, len(faults))
	for _, f := range faults {
		wire = append(wire, api.FileFault(f))
	}
	return wire
}

func faultsFromWire(wire []api.FileFault) (faults document.Faults) {
	for _, f := range wire {
		faults = append(faults, document.Fault(f))
	}
	return faults
}

type emptyReply struct{}

// errorReply is the body of every status but 200: a label of errors.go, and the text of the server's error.
type errorReply struct {
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

// parse checks a request. The identity service checks whether there is such a user.
func (c createRequest) parse() (identity.CreateCredential, error) {
	var expires time.Duration
	var err error
	if c.Expires != "" {
		if expires, err = time.ParseDuration(c.Expires); err != nil {
			return identity.CreateCredential{}, errors.Join(ErrUnknownRequest, err)
		}
	}
	if c.User == "" {
		return identity.CreateCredential{}, fmt.Errorf("%w: the user is missing", ErrUnknownRequest)
	}
	return identity.CreateCredential{User: identity.UserID(c.User), Expires: expires, Note: c.Note}, nil
}

// pathOf returns the path of the credentials of a kind.
func pathOf(kind identity.Kind) string {
	if kind == identity.Session {
		return pathSession
	}
	return pathToken
}
