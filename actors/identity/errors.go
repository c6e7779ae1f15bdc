package identity

import (
	"errors"
	"fmt"
)

var (
	// ErrUnauthorized is what Authenticate answers for every cause: malformed,
	// unknown, expired, idle, revoked, of another kind, user disabled or gone;
	// and SignIn for a user who is unknown, disabled or without a password, and
	// for a wrong password. The gateway answers 401 with a body that is the same
	// for all of them.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrNoCredential is what Revoke answers when there is no credential of that
	// kind with that id.
	ErrNoCredential = errors.New("no such credential")
	// ErrNoUser is what CreateToken, CreateSession and SetPassword answer when
	// identity.yaml does not name the user, or names the user as disabled.
	ErrNoUser = errors.New("no such user, or disabled")
	// ErrInvalid is what CreateToken and CreateSession answer when the note or
	// the time to expiry cannot be taken, SetPassword when a rule for passwords is
	// broken, and SignInVouched when the roles are too many. Its text is meant for the caller.
	ErrInvalid = errors.New("invalid request")
	// ErrTooManyAttempts is wrapped by the AttemptsError of SignIn, which says how
	// long to wait. The password was not looked at.
	ErrTooManyAttempts = errors.New("too many failed sign-ins")
	// ErrBusy is what SignIn and SetPassword answer when too many password hashes
	// wait to be computed. Nothing was done; the caller tries again later.
	ErrBusy = errors.New("too many passwords are being checked")
	// ErrFull is what CreateToken, CreateSession and SignIn answer at
	// Options.CredentialsMax, when no credential has ended that could give way.
	// Nothing was stored.
	ErrFull = errors.New("too many credentials")
	// ErrStopped is what every writing call answers after Stop. Nothing was
	// stored.
	ErrStopped = errors.New("identity service is stopped")
	// ErrCorrupt marks a stored row that cannot be read. The row is kept for
	// inspection, counted, and its credential is refused.
	ErrCorrupt = errors.New("corrupt credential row")
)

// invalid wraps ErrInvalid, and its text is the reason alone.
type invalid string

func (i invalid) Error() string { return string(i) }

func (invalid) Unwrap() error { return ErrInvalid }

// Invalid returns an error that wraps ErrInvalid and whose text is the reason.
func Invalid(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }
