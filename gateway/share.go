package gateway

import (
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/identity"
)

// shares has what each user holds of the limits of capacity, of which nobody may
// have more than half (gateway/DESIGN.md, "Fairness"). Nobody leaves it: it has at
// most one entry for each user there ever was.
type shares struct {
	users *xsync.Map[identity.UserID, *share]
}

func newShares() shares { return shares{xsync.NewMap[identity.UserID, *share]()} }

// share is what one user holds.
type share struct {
	requests    atomic.Int64 // in flight
	watchers    atomic.Int64 // begun or about to
	answerBytes atomic.Int64 // of large answers that are being sent
}

func (s shares) of(user identity.UserID) *share {
	if mine, ok := s.users.Load(user); ok {
		return mine
	}
	mine, _ := s.users.LoadOrStore(user, new(share))
	return mine
}

// half is the most that one may have of a limit; of anything one may have one.
func half(limit int64) int64 { return max(1, limit/2) }

// idlePart is the part of the connections that is never busy with requests or
// watchers, so that there is always one to close for a new one: health is
// answered whatever happens.
const idlePart = 8

// limits are what the server has of each thing.
type limits struct {
	// inFlight bounds the requests in flight: Options.InFlightMax, or as many as
	// there are connections for.
	inFlight int64
	// busy bounds them and the watchers together.
	busy int64
	// userInFlight, userBusy and so on are what one user may have of it.
	userInFlight, userBusy, userWatchers, userAnswerBytes int64
	// strangers is what all requests without a credential may have of inFlight
	// together. addressStrangers is for those of one address: a quarter, because
	// behind one there may be many people who sign in.
	strangers, addressStrangers int64
}

func newLimits(o *Options) limits {
	connections := int64(o.ConnectionsMax)
	busy := max(1, connections-max(1, connections/idlePart))
	inFlight := min(o.InFlightMax, busy)
	return limits{
		inFlight: inFlight, busy: busy,
		userInFlight: half(inFlight), userBusy: half(connections),
		userWatchers: min(o.WatchersPerUserMax, half(o.WatchersMax)), userAnswerBytes: half(o.AnswerBytesMax),
		strangers: half(inFlight), addressStrangers: max(1, inFlight/4),
	}
}

// enterUser counts the request for its caller, or reports that the caller has a
// share already.
func (x *exchange) enterUser() bool {
	x.share = x.server.shares.of(x.caller.ID)
	requests := x.share.requests.Add(1)
	l := &x.server.limits
	return requests <= l.userInFlight && requests+x.share.watchers.Load() <= l.userBusy
}
