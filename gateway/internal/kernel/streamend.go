package kernel

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

// RightsEvery is how often an open stream asks whether its caller may go on, and whether people are still called what they were: also while there is
// nothing to tell.
const RightsEvery = 500 * time.Millisecond

// appendAskAgain tells who watches to ask for everything again, because what holds for them has changed.
func appendAskAgain(dst []byte) ([]byte, error) {
	return append(dst, "event: lost\ndata: {\"message\":\"rights or names have changed; read again\"}\n\n"...), nil
}

// FollowRights gives the request a context that ends when its caller loses the credential, has other rights, or somebody has another name. Its cause says
// which: failure.ErrUnauthorized or ErrWatchOver. release waits until nothing asks any more.
func (x *Exchange) FollowRights(every time.Duration) (release func()) {
	request := x.Request
	ctx, end := context.WithCancelCause(request.Context())
	x.Request = request.WithContext(ctx)
	names := x.Kernel.names.number(x.Services.Users)
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
			_, err := x.Reauthorize()
			if err == nil && x.Kernel.names.number(x.Services.Users) != names {
				err = ErrWatchOver
			}
			if err != nil {
				end(err)
			}
		}
	})
	return func() {
		end(nil)
		asking.Wait()
		x.Request = request
	}
}

// IsOverByRights reports whether an error ends a stream because other rights or names hold now.
func IsOverByRights(err error) bool {
	return errors.Is(err, ErrWatchOver) || errors.Is(err, failure.ErrUnauthorized)
}

// rightsError is what ended a watch: what FollowRights says, before what came of it.
func (x *Exchange) rightsError(err error) error {
	if cause := context.Cause(x.Request.Context()); err != nil && IsOverByRights(cause) {
		return cause
	}
	return err
}

// tellRights asks who watches to read again when the stream ends by rights.
func (x *Exchange) tellRights(err error) error {
	if x.Status == 0 || x.Request.Method == http.MethodHead || !IsOverByRights(err) {
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
