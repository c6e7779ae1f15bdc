package gateway

import (
	"runtime"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/identity"
	"troupe/gateway/toll"
)

// usageTable has what each user uses of the limits of capacity, of which nobody may
// have more than half (gateway/DESIGN.md, "Fairness"). Entries stay: there is at
// most one for each user that was ever authenticated.
type usageTable struct {
	users *xsync.Map[identity.UserID, *userUsage]
}

func newUsageTable() usageTable { return usageTable{xsync.NewMap[identity.UserID, *userUsage]()} }

// userUsage is what one user uses now.
type userUsage struct {
	requests    atomic.Int64 // in flight
	watchers    atomic.Int64 // open or about to be
	answerBytes atomic.Int64 // of large answers that are being sent
	batches     atomic.Int64 // that have items
	batchBytes  atomic.Int64 // of their large bodies
	idle        atomic.Int64 // of the requests: see leavePlace
	retryAt     atomic.Int64 // when the user was told to come again for being beyond its share, in nanoseconds since the server's start
	bytes       toll.Account // of bodies beyond bodyFirstBytes of each, and of large answers
}

func (t usageTable) of(user identity.UserID) *userUsage {
	if usage, ok := t.users.Load(user); ok {
		return usage
	}
	usage, _ := t.users.LoadOrStore(user, new(userUsage))
	return usage
}

// half is the most that one user may have of a limit, and at least 1.
func half(limit int64) int64 { return max(1, limit/2) }

// idlePart is the divisor for the connections that are never busy with requests or
// watchers: one in eight. So there is always one to close for a new one, and
// health is always answered.
const idlePart = 8

// limits are the limits of capacity that follow from the Options.
type limits struct {
	// inFlight is the most that pressure ever bounds the requests in flight to:
	// Options.InFlightMax, or as many as there are connections for.
	inFlight int64
	// busyConnections bounds them and the watchers together.
	busyConnections int64
	// userBusyConnections and so on are what one user may have of each.
	userBusyConnections, userWatchers, userAnswerBytes int64
	// anonymous is what all requests to routes without a credential may have of
	// inFlight together. anonymousPerNetwork is for those of one network: a quarter,
	// because many people may sign in from one.
	anonymous, anonymousPerNetwork int64
	// userBytes is how many bytes of large bodies and answers one user may have in a second: what half of the processors
	// read and parse. All requests without a credential have as much together.
	userBytes int64
}

func newLimits(o *Options) limits {
	connections := int64(o.ConnectionsMax)
	busy := max(1, connections-max(1, connections/idlePart))
	inFlight := min(o.InFlightMax, busy)
	return limits{
		inFlight: inFlight, busyConnections: busy,
		userBusyConnections: half(connections),
		userWatchers:        min(o.WatchersPerUserMax, half(o.WatchersMax)), userAnswerBytes: half(o.AnswerBytesMax),
		anonymous: half(inFlight), anonymousPerNetwork: max(1, inFlight/4),
		userBytes: half(toll.ProcessorBytes * int64(runtime.GOMAXPROCS(0))),
	}
}
