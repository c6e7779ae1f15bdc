package identity

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"

	"troupe/actors/failure"
	"troupe/actors/identity/internal/attempts"
	"troupe/actors/identity/password"
	"troupe/statemachine"
)

// SignIn makes a session for the user, and returns its secret text and the user, when the password is right. address is
// where the request comes from; the zero address is an unknown one.
//
// Unknown and disabled users, users without a password and wrong passwords are the same failure.ErrUnauthorized and the
// same work. Other errors: ErrQuota (with Error.Wait), ErrBusy, ErrUnavailable, those of the store and of ctx; with
// them nobody was signed in.
//
// It blocks for the time of a hash, and for those in front of it.
func (s *Service) SignIn(ctx context.Context, user UserID, password string, address netip.Addr) (string, *Principal, error) {
	secret, p, err := s.signIn(ctx, user, password, address)
	return secret, p, failure.In("sign in", subjectOf(user), err)
}

// subjectOf is the user as errors name one: not at all when the name is impossible.
func subjectOf(user UserID) string {
	if !statemachine.IsIdentifier(string(user)) {
		return ""
	}
	return strconv.Quote(string(user))
}

func (s *Service) signIn(ctx context.Context, user UserID, given string, address netip.Addr) (string, *Principal, error) {
	try, err := s.begin(user, address)
	if err != nil {
		return "", nil, err
	}
	normal, possible := password.Normal(given)
	if !possible || !statemachine.IsIdentifier(string(user)) {
		// The sender knows that nobody can have this name or this password: there is nothing to hide, and no hash to
		// compute. It counts like any failure.
		return "", nil, s.signInFailed(user, address)
	}
	known, right, err := s.verify(ctx, holderOf(user, try), user, normal)
	if err == nil && !right {
		return "", nil, s.signInFailed(user, address)
	}
	var secret string
	var p *Principal
	if err == nil {
		secret, p, err = s.openSession(ctx, opening{user: user, proof: known, how: "signed in", address: address})
	}
	switch {
	case errors.Is(err, failure.ErrUnauthorized):
		return "", nil, s.signInFailed(user, address)
	case err != nil:
		try.Abandoned()
		return "", nil, err
	}
	try.Succeeded()
	return secret, p, nil
}

func (s *Service) begin(user UserID, address netip.Addr) (*attempts.Attempt, error) {
	account := user
	if !statemachine.IsIdentifier(string(user)) {
		account = attempts.Nobody
	}
	try, err := s.attempts.Begin(string(account), address, s.options.Clock())
	if err != nil {
		s.signInsRefused.Add(1)
		s.options.Log.Debug().Err(err).Str("user", loggedName(user)).Stringer("address", address).Msg("sign-in not looked at")
	}
	return try, err
}

// hashHolder is whose share a hash uses: an account's in a known place, or that of everybody else at one address.
type hashHolder struct {
	user UserID
	from netip.Prefix
}

func holderOf(user UserID, try *attempts.Attempt) hashHolder {
	from, known := try.Place()
	if known {
		return hashHolder{user: user}
	}
	return hashHolder{from: from}
}

// verify compares the password with the user's, and returns the one that it compared with. It always computes one hash.
func (s *Service) verify(ctx context.Context, holder hashHolder, user UserID, normal string) (*proof, bool, error) {
	want, known := s.hasher.Unknown, new(proof)
	if a, ok := s.accounts.Load(user); ok && s.directory.Load().Principal(user) != nil {
		if p := a.password.Load(); p != nil {
			want, known = p.hash, &proof{a, p}
		}
	}
	right, err := s.hasher.Matches(ctx, holder, normal, want)
	return known, right && known.password != nil, err
}

const sessionRolesMax = 32

// Vouched is somebody whom an identity provider, or a link, has recognised.
type Vouched struct {
	User    UserID
	Roles   []RoleID   // those that the provider gives, at most 32
	Address netip.Addr // where the request comes from; zero when it is unknown
	How     string     // what the log and the list of sessions say of it; empty: that the provider did it
}

// SignInVouched makes a session without a password, for a user whom the caller has recognised; otherwise it is like
// SignIn. Errors: failure.ErrUnauthorized when identity.yaml does not name the user or names the user as disabled;
// ErrInvalid for too many roles, ErrBusy, ErrUnavailable, those of the store and of ctx.
func (s *Service) SignInVouched(ctx context.Context, v Vouched) (string, *Principal, error) {
	secret, p, err := s.signInVouched(ctx, v)
	if errors.Is(err, failure.ErrUnauthorized) {
		err = s.signInFailed(v.User, v.Address)
	}
	return secret, p, failure.In("sign in", subjectOf(v.User), err)
}

func (s *Service) signInVouched(ctx context.Context, v Vouched) (string, *Principal, error) {
	if s.directory.Load().Principal(v.User) == nil {
		return "", nil, failure.ErrUnauthorized
	}
	roles := slices.Clone(v.Roles)
	slices.Sort(roles)
	roles = slices.Compact(roles)
	if len(roles) > sessionRolesMax || slices.ContainsFunc(roles, func(r RoleID) bool { return !statemachine.IsIdentifier(string(r)) }) {
		return "", nil, failure.Refuse(failure.ErrInvalid, "the roles are too many, or one is not a valid id")
	}
	return s.openSession(ctx, opening{user: v.User, roles: roles, how: cmp.Or(v.How, "signed in by the provider"), address: v.Address})
}

type opening struct {
	user    UserID
	roles   []RoleID
	proof   *proof // nil: none is needed
	how     string
	address netip.Addr
}

func (s *Service) openSession(ctx context.Context, o opening) (string, *Principal, error) {
	note := o.how
	if o.address.IsValid() {
		note += " from " + o.address.Unmap().WithZone("").String()
	}
	e, secret, err := s.drawEntry(Session, CreateCredential{User: o.user, Note: note})
	if err == nil {
		e.roles = o.roles
		err = s.submit(ctx, change{create: e, proof: o.proof})
	}
	var p *Principal
	if err == nil {
		p = e.principal(s.directory.Load())
	}
	if errors.Is(err, errNoUser) || err == nil && p == nil { // disabled meanwhile
		err = failure.ErrUnauthorized
	}
	if err != nil {
		return "", nil, err
	}
	s.signIns.Add(1)
	line := s.options.Log.Info().Str("user", string(o.user)).Str("credential", e.id).Stringer("address", o.address)
	if len(o.roles) > 0 {
		line = line.Strs("roles", texts(o.roles))
	}
	line.Msg(o.how)
	return e.id + "." + secret, p, nil
}

// An impossible name is logged at debug only: it tells an operator nothing.
func (s *Service) signInFailed(user UserID, address netip.Addr) error {
	s.signInsFailed.Add(1)
	line := s.options.Log.Info()
	if !statemachine.IsIdentifier(string(user)) {
		line = s.options.Log.Debug()
	}
	line.Str("user", loggedName(user)).Stringer("address", address).Msg("sign-in failed")
	return failure.ErrUnauthorized
}

const loggedNameMax = 64

// loggedName is a name from outside as it may stand in a log: visible ASCII, escaped, and cut.
func loggedName(user UserID) string {
	name, rest := user, ""
	if len(name) > loggedNameMax {
		name, rest = name[:loggedNameMax], "…"
	}
	if statemachine.IsIdentifier(string(name)) {
		return string(name) + rest
	}
	return strconv.QuoteToASCII(string(name)) + rest
}

// SignOut ends the session of a whole secret text. It is refused at once, and for good when SignOut has returned nil.
func (s *Service) SignOut(ctx context.Context, session string) error {
	if _, err := s.Authenticate(Session|Ending, session); err != nil {
		return failure.In("sign out", "", err)
	}
	return s.Revoke(ctx, Session, session)
}

// SetPassword gives the user a password. When it has returned nil, the new password is durable and all sessions of the
// user have ended for good; tokens stay. After an error of the store or of ctx, the sessions may have ended, and the password may
// be the new one; setting it again makes both sure.
func (s *Service) SetPassword(ctx context.Context, user UserID, password string) error {
	p, err := s.newPassword(ctx, user, password)
	if err == nil {
		err = s.submit(ctx, change{password: p})
	}
	if err != nil {
		return failure.In("set password of", strconv.Quote(string(user)), err)
	}
	s.attempts.Forget(string(user))
	s.options.Log.Info().Str("user", string(user)).Msg("password set")
	return nil
}

func (s *Service) newPassword(ctx context.Context, user UserID, text string) (*newPassword, error) {
	if s.directory.Load().Principal(user) == nil {
		return nil, errNoUser
	}
	normal, err := password.Check(string(user), text)
	if err != nil {
		return nil, err
	}
	hash, err := s.hasher.Hash(ctx, hashHolder{user: user}, normal)
	if err != nil {
		return nil, err
	}
	a, _ := s.accounts.LoadOrStore(user, new(account))
	return &newPassword{&storedPassword{user: user, hash: hash, changed: s.options.Clock().UnixMilli()}, a}, nil
}
