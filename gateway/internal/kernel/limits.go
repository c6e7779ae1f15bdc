package kernel

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
	users *xsync.Map[identity.UserID, *UserUsage]
}

func newUsageTable() usageTable { return usageTable{xsync.NewMap[identity.UserID, *UserUsage]()} }

// UserUsage is what one user uses now.
type UserUsage struct {
	Requests    atomic.Int64 // in flight
	Watchers    atomic.Int64 // open or about to be
	AnswerBytes atomic.Int64 // of large answers that are being sent
	Batches     atomic.Int64 // that have items
	BatchBytes  atomic.Int64 // of their large bodies
	Idle        atomic.Int64 // of the requests: see LeaveSlot
	RetryAt     atomic.Int64 // when the user was told to come again for being beyond its share, in nanoseconds since the server's start
	Bytes       toll.Account // of bodies beyond BodyFirstBytes of each, and of large answers
}

func (t usageTable) Of(user identity.UserID) *UserUsage {
	if usage, ok := t.users.Load(user); ok {
		return usage
	}
	usage, _ := t.users.LoadOrStore(user, new(UserUsage))
	return usage
}

// Half is the most that one user may have of a limit, and at least 1.
func Half(limit int64) int64 { return max(1, limit/2) }

// idlePart is the divisor for the connections that are never busy with requests or
// watchers: one in eight. So there is always one to close for a new one, and
// health is always answered.
const idlePart = 8

// limits are the limits of capacity that follow from the Options.
type limits struct {
	// InFlight is the most that pressure ever bounds the requests in flight to:
	// Options.InFlightMax, or as many as there are connections for.
	inFlight int64
	// busyConnections bounds them and the watchers together.
	busyConnections int64
	// userBusyConnections and so on are what one user may have of each.
	userBusyConnections, UserWatchers, userAnswerBytes int64
	// anonymous is what all requests to routes without a credential may have of
	// InFlight together. anonymousPerNetwork is for those of one network: a quarter,
	// because many people may sign in from one.
	anonymous, anonymousPerNetwork int64
	// UserBytes is how many bytes of large bodies and answers one user may have in a second: what half of the processors
	// read and parse. All requests without a credential have as much together.
	UserBytes int64
}

func newLimits(o *Options) limits {
	connections := int64(o.ConnectionsMax)
	busy := max(1, connections-max(1, connections/idlePart))
	inFlight := min(o.InFlightMax, busy)
	return limits{
		inFlight: inFlight, busyConnections: busy,
		userBusyConnections: Half(connections),
		UserWatchers:        min(o.WatchersPerUserMax, Half(o.WatchersMax)), userAnswerBytes: Half(o.AnswerBytesMax),
		anonymous: Half(inFlight), anonymousPerNetwork: max(1, inFlight/4),
		UserBytes: Half(toll.ProcessorBytes * int64(runtime.GOMAXPROCS(0))),
	}
}
