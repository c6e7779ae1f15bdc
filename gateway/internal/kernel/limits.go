package kernel

import (
	"math"
	"net/netip"
	"runtime"
	gometrics "runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/identity"
	"troupe/gateway/toll"
)

// usageTable has what each user uses of the limits of capacity, of which nobody may have more than half
// (gateway/DESIGN.md, "Fairness"). Entries stay: there is at most one for each user that was ever authenticated.
type usageTable struct {
	users interface { // an interface, as actors/internal/concurrent says
		Load(identity.UserID) (*UserUsage, bool)
		LoadOrStore(identity.UserID, *UserUsage) (*UserUsage, bool)
	}
}

func newUsageTable() usageTable { return usageTable{xsync.NewMap[identity.UserID, *UserUsage]()} }

// UserUsage is what one user uses now.
type UserUsage struct {
	Requests    atomic.Int64 // in flight
	Watchers    atomic.Int64 // open or about to be
	waits       atomic.Int64 // see AdmitWait
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

// idlePart is the divisor for the connections that are never busy with requests or watchers: one in eight. So there is
// always one to close for a new one, and health is always answered.
const idlePart = 8

type limits struct {
	// inFlight is the most that pressure ever bounds the requests in flight to:
	// Options.InFlightMax, or as many as there are connections for.
	inFlight        int64
	busyConnections int64 // busyConnections bounds them, the watchers and the waits together
	// userBusyConnections and so on are what one user may have of each.
	userBusyConnections, UserWatchers, userAnswerBytes int64
	// anonymous is what all requests to routes without a credential may have of inFlight together. anonymousPerNetwork
	// is for those of one network: a quarter, because many people may sign in from one.
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

// anonymousRequests counts the requests in flight to routes without a credential. They are bounded, so that slow
// anonymous requests cannot use up Options.InFlightMax.
type anonymousRequests struct {
	Mu struct {
		sync.Mutex
		All       int64
		ByNetwork map[netip.Prefix]int64
	}
}

// admit counts a request from a network, or reports that there are too many.
func (s *anonymousRequests) admit(from netip.Prefix, l *limits) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Mu.All >= l.anonymous || s.Mu.ByNetwork[from] >= l.anonymousPerNetwork {
		return false
	}
	if s.Mu.ByNetwork == nil {
		s.Mu.ByNetwork = map[netip.Prefix]int64{}
	}
	s.Mu.All++
	s.Mu.ByNetwork[from]++
	return true
}

func (s *anonymousRequests) release(from netip.Prefix) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Mu.All--
	if s.Mu.ByNetwork[from]--; s.Mu.ByNetwork[from] == 0 {
		delete(s.Mu.ByNetwork, from)
	}
}

// How many requests are worked on at once follows from how long goroutines wait for a
// processor (gateway/DESIGN.md, "Overload").
const (
	pressureEvery = 100 * time.Millisecond
	// waitGoal is how long nine of ten goroutines may wait for a processor, in seconds. A
	// request waits a few times, and health has to be answered in 50 ms.
	waitGoal = 0.020
	// inFlightMin is what each processor gets however long is waited. It is enough for
	// the full rate: more only makes all of them slower.
	inFlightMin = 64
	// refusalsGoal is how many requests per second each processor may refuse, about. A caller
	// who comes back after seconds is in no cache any more, so a refusal costs as much as an event.
	refusalsGoal = 100
	// retryAfterMax is the longest Retry-After, in seconds, and RetryAfterMin what the
	// longest is while few are refused.
	retryAfterMax, RetryAfterMin = 30, 3
)

// pressure bounds the requests in flight between inFlightMin for each processor and most: to four fifths of what there
// are after each interval in which more than a tenth of the goroutines that were ready waited longer than waitGoal, and
// to a tenth more after any other.
type pressure struct {
	Limit       atomic.Int64 // of the requests in flight, now
	least, most int64
	retryAfter  atomic.Int64 // the longest Retry-After now, in seconds

	sample []gometrics.Sample
	before []uint64 // the counts of the sample before
}

func newPressure(most int64) *pressure {
	p := &pressure{
		least: min(most, inFlightMin*int64(runtime.GOMAXPROCS(0))), most: most,
		sample: []gometrics.Sample{{Name: "/sched/latencies:seconds"}},
	}
	p.Limit.Store(most)
	p.retryAfter.Store(RetryAfterMin)
	return p
}

// run follows the pressure until stop is closed. working counts the requests that have places, and
// refused those that were refused for want of one.
func (p *pressure) run(stop <-chan struct{}, working func() int64, refused *atomic.Uint64) {
	ticker := time.NewTicker(pressureEvery)
	defer ticker.Stop()
	before := refused.Load()
	for tick := 1; ; tick++ {
		select {
		case <-stop:
			return
		case <-ticker.C:
			p.follow(p.waited(), working())
			if tick%int(time.Second/pressureEvery) == 0 {
				now := refused.Load()
				p.spread(now - before)
				before = now
			}
		}
	}
}

// follow moves the limit after an interval in which goroutines waited so many seconds.
func (p *pressure) follow(waited float64, inFlight int64) {
	limit := p.Limit.Load()
	if waited > waitGoal {
		limit = max(p.least, min(limit, inFlight)*4/5)
	} else {
		limit = min(p.most, limit+limit/10+1)
	}
	p.Limit.Store(limit)
}

// spread moves the longest Retry-After after a second in which so many were refused: as many callers come back in a
// second as refusalsGoal says when all that are refused are spread over that time.
func (p *pressure) spread(refused uint64) {
	goal := uint64(refusalsGoal * runtime.GOMAXPROCS(0))
	longest := uint64(p.retryAfter.Load()) * refused / goal
	p.retryAfter.Store(int64(min(max(longest, RetryAfterMin), retryAfterMax)))
}

// waited returns how long a tenth of the goroutines that got a processor since the last
// call had waited for it at least, in seconds.
func (p *pressure) waited() float64 {
	gometrics.Read(p.sample)
	h := p.sample[0].Value.Float64Histogram()
	if p.before == nil {
		p.before = make([]uint64, len(h.Counts))
	}
	waited := leastOfTop(h, p.before)
	copy(p.before, h.Counts)
	return waited
}

// leastOfTop returns the lower bound of the bucket that the least of the highest tenth is
// in, of what a histogram has more than before; 0 of nothing.
func leastOfTop(h *gometrics.Float64Histogram, before []uint64) float64 {
	all := uint64(0)
	for i, n := range h.Counts {
		all += n - before[i]
	}
	above := uint64(0)
	for i := len(h.Counts) - 1; i >= 0; i-- {
		above += h.Counts[i] - before[i]
		if above*10 > all {
			return math.Max(0, h.Buckets[i]) // the first bucket begins at minus infinity
		}
	}
	return 0
}
