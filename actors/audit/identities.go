package audit

import (
	"context"
	"errors"
	"net/netip"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/statemachine"
)

type actorKey struct{}

// By says who asks, for the calls of Identities. Without it that is statemachine.System: a command on the server's own machine.
func By(ctx context.Context, user identity.UserID) context.Context {
	return context.WithValue(ctx, actorKey{}, string(user))
}

func actorOf(ctx context.Context) string {
	if user, known := ctx.Value(actorKey{}).(string); known {
		return user
	}
	return statemachine.System
}

// Identities records what happens to tokens, sessions and passwords, where it is done. In all else it is what it wraps.
type Identities struct {
	identity.Identities
	Log *Log
}

// Create records who made a credential; who it is for is with the credential.
func (i *Identities) Create(ctx context.Context, kind identity.Kind, c identity.CreateCredential) (string, identity.Credential, error) {
	secret, made, err := i.Identities.Create(ctx, kind, c)
	if err == nil {
		err = i.Log.Record(ctx, actorOf(ctx), Action(kind.String())+".create", made.ID)
	}
	if err != nil {
		return "", identity.Credential{}, err
	}
	return secret, made, nil
}

// Revoke records who ended a credential.
func (i *Identities) Revoke(ctx context.Context, kind identity.Kind, id string) error {
	err := i.Identities.Revoke(ctx, kind, id)
	if err == nil {
		err = i.Log.Record(ctx, actorOf(ctx), Action(kind.String())+".revoke", idOf(id))
	}
	return err
}

// idOf is the id of a credential that may be whole.
func idOf(credential string) string {
	id, _, _ := strings.Cut(credential, ".")
	return id
}

// SetPassword records whose password was set, and who did it.
func (i *Identities) SetPassword(ctx context.Context, user identity.UserID, password string) error {
	err := i.Identities.SetPassword(ctx, user, password)
	if err == nil {
		err = i.Log.Record(ctx, actorOf(ctx), PasswordSet, string(user))
	}
	return err
}

// SignIn records who signed in, and who could not.
func (i *Identities) SignIn(ctx context.Context, user identity.UserID, password string, address netip.Addr) (string, *identity.Principal, error) {
	session, p, err := i.Identities.SignIn(ctx, user, password, address)
	return i.signedIn(ctx, session, p, err, user, address)
}

// SignInVouched is SignIn for who was recognized elsewhere.
func (i *Identities) SignInVouched(ctx context.Context, v identity.Vouched) (string, *identity.Principal, error) {
	session, p, err := i.Identities.SignInVouched(ctx, v)
	return i.signedIn(ctx, session, p, err, v.User, v.Address)
}

func (i *Identities) signedIn(ctx context.Context, session string, p *identity.Principal, err error, user identity.UserID, address netip.Addr) (string, *identity.Principal, error) {
	switch {
	case err == nil:
		err = i.Log.Record(ctx, string(user), SignIn, idOf(session))
	case errors.Is(err, failure.ErrUnauthorized), errors.Is(err, failure.ErrQuota):
		if i.Directory().Principal(user) == nil {
			user = "" // NB: what was typed in its place may be a password
		}
		from := ""
		if address.IsValid() {
			from = address.Unmap().WithZone("").String()
		}
		i.Log.Refuse(string(user), SignInRefuse, from)
	}
	if err != nil {
		return "", nil, err
	}
	return session, p, nil
}

// SignOut records who signed out.
func (i *Identities) SignOut(ctx context.Context, session string) error {
	p, err := i.Authenticate(identity.Session|identity.Ending, session)
	if failed := i.Identities.SignOut(ctx, session); failed != nil || err != nil {
		return failed
	}
	return i.Log.Record(ctx, string(p.ID), SignOut, idOf(session))
}
