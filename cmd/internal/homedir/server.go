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

// AloneAt refuses a home on which another server runs: it would answer at the
// socket. A socket that nobody listens at is what a killed server left. What
// cannot be asked is left to the locks of the store.
func AloneAt(ctx context.Context, home string) error {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	socket := filepath.Join(home, AdminSocket)
	if _, err := admin.Dial(ctx, socket); err != nil {
		return nil
	}
	return fmt.Errorf("%w: a server answers at %s; stop it first, or give this one a --home of its own", persistence.ErrLocked, socket)
}

// IsServed reports whether a server runs on the home.
func IsServed(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, AskMax)
	defer cancel()
	_, err := admin.Dial(ctx, filepath.Join(dir, AdminSocket))
	return !errors.Is(err, admin.ErrNoServer)
}
