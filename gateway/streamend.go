package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
	"troupe/actors/identity"
)

// rightsEvery is how often an open stream asks whether its caller may go on, and whether people are still called what they were: also while there is
// nothing to tell.
const rightsEvery = 500 * time.Millisecond

// appendAskAgain tells who watches to ask for everything again, because what holds for them has changed.
func appendAskAgain(dst []byte) ([]byte, error) {
	return append(dst, "event: lost\ndata: {\"message\":\"rights or names have changed; read again\"}\n\n"...), nil
}

// followRights gives the request a context that ends when its caller loses the credential, has other rights, or somebody has another name. Its cause says
// which: failure.ErrUnauthorized or errWatchOver. release waits until nothing asks any more.
func (x *exchange) followRights(every time.Duration) (release func()) {
	request := x.r
	ctx, end := context.WithCancelCause(request.Context())
	x.r = request.WithContext(ctx)
	names := x.server.names.number(x.services.Users)
	var asking sync.WaitGroup
	asking.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return
			}
			_, err := x.reauthorize()
			if err == nil && x.server.names.number(x.services.Users) != names {
				err = errWatchOver
			}
			if err != nil {
				end(err)
			}
		}
	})
	return func() {
		end(nil)
		asking.Wait()
		x.r = request
	}
}

// isOverByRights reports whether an error ends a stream because other rights or names hold now.
func isOverByRights(err error) bool {
	return errors.Is(err, errWatchOver) || errors.Is(err, failure.ErrUnauthorized)
}

// rightsError is what ended a watch: what followRights says, before what came of it.
func (x *exchange) rightsError(err error) error {
	if cause := context.Cause(x.r.Context()); err != nil && isOverByRights(cause) {
		return cause
	}
	return err
}

// tellRights asks who watches to read again when the stream ends by rights.
func (x *exchange) tellRights(err error) error {
	if x.status == 0 || x.r.Method == http.MethodHead || !isOverByRights(err) {
		return err
	}
	return errors.Join(x.sendEvent(appendAskAgain), err)
}

// knownNames numbers the changes of what people are called. Its methods are safe for concurrent use.
type knownNames struct {
	mu      sync.Mutex
	of      *identity.Directory // guarded by mu
	changes int                 // guarded by mu
}

// number is of now.
func (k *knownNames) number(of Users) int {
	if of == nil {
		return 0
	}
	now := of.Directory()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != now {
		isNamedSame := func(a, b identity.User) bool { return a.ID == b.ID && a.Name == b.Name }
		if k.of != nil && !slices.EqualFunc(k.of.Users(), now.Users(), isNamedSame) {
			k.changes++
		}
		k.of = now
	}
	return k.changes
}
