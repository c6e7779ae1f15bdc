package homedir

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"troupe/gateway/admin"
	"troupe/persistence"
)

// AskMax is how long another server may take to accept a connection.
const AskMax = 5 * time.Second

// Dial connects to the server that runs on a home; admin.ErrNoServer when none does.
func Dial(ctx context.Context, dir string) (*admin.Client, error) {
	return admin.Dial(ctx, filepath.Join(dir, AdminSocket))
}

// AloneAt refuses a home on which another server runs: it would answer at the socket.
func AloneAt(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	if _, err := Dial(ctx, dir); err != nil {
		return nil
	}
	return fmt.Errorf("%w: a server answers at %s; stop it first, or give this one a --home of its own", persistence.ErrLocked, filepath.Join(dir, AdminSocket))
}

// IsServed reports whether a server runs on the home.
func IsServed(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	_, err := Dial(ctx, dir)
	return !errors.Is(err, admin.ErrNoServer)
}
