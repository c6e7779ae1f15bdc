package endtoend

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/wiretest"
)

// killing says how TestKill works.
type killing struct {
	binary  string
	kills   int
	workers int
	seed    uint64
	// untilLoss ends at the first loss: for the control.
	untilLoss bool
}

// killed is what came out.
type killed struct {
	kills, inStart int // inStart: of the kills, those before the program was ready
	repeats        int
	inCluster      bool // a node may refuse for a moment
	forms          forms
	found          findings
	recoveries     []time.Duration
}

// TestKill ends the program by SIGKILL under load and holds what it shows
// afterwards against what it had acknowledged, of instances and of forms (persistence/PROMISES.md, "P1";
// persistence/PROMISES.md, "P6"; persistence/PROMISES.md, "P7";
// persistence/PROMISES.md, "P11"; gateway/INTERFACE.md, "What an answer means"). It
// prints how long the starts took (persistence/PROMISES.md, "P15").
func TestKill(t *testing.T) {
	kills := 5 // .ci/kill makes more
	if text := os.Getenv(killsName); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err, killsName)
	}
	l := newLedger()
	k := killing{binary: binary(), kills: kills, workers: 32, seed: seed(t)}
	got := k.run(t, l)
	acks, unknowns := l.mu.acks, l.mu.unknown
	t.Logf("kills %d (%d of them before readiness), acknowledged %d, unknown %d, reads %d, instances checked %d, repeats %d: "+
		"lost %d, doubled %d, broken %d", got.kills, got.inStart, acks, unknowns, l.mu.looks, got.found.instances, got.repeats,
		len(got.found.lost), len(got.found.doubled), len(got.found.broken))
	t.Logf("with no loss, the 95%% upper bound is %.2g per acknowledgement and %.2g per kill (3/N)", 3/float64(max(acks, 1)), 3/float64(max(got.kills, 1)))
	t.Logf("ready again after %v (median) and %v (most)", percentile(got.recoveries, 50), percentile(got.recoveries, 100))
	assert.LessOrEqual(t, len(got.found.lost)+len(got.found.doubled)+len(got.found.broken), 0, &got.found)
	l.report(t)
	assert.True(t, acks >= kills && unknowns != 0, "%d acknowledged and %d unknown requests: there was no load to kill under", acks, unknowns)
}

// TestKillControl runs the same harness against a program that acknowledges
// commits before they are durable, and demands that losses are found. If none
// are, the zero of TestKill means nothing.
func TestKillControl(t *testing.T) {
	l := newLedger()
	k := killing{binary: nosync(t), kills: 40, workers: 32, seed: seed(t), untilLoss: true}
	got := k.run(t, l)
	t.Logf("with the bug switched on, after %d kills and %d acknowledgements: lost %d", got.kills, l.mu.acks, len(got.found.lost))
	assert.NotEmpty(t, got.found.lost, "the planted bug was not seen in %d kills: the harness is blind", got.kills)
}

const killsName = "TROUPE_TEST_KILLS"

// nosync returns the program with the bug, for controls. They are left out where nobody asks for a number
// of kills: linking that program and killing it until it has lost something takes longer than go test has.
func nosync(t *testing.T) string {
	t.Helper()
	if os.Getenv(killsName) == "" {
		t.Skip(killsName + " is not set, as .ci/kill does")
	}
	path := filepath.Join(t.TempDir(), "nosync")
	out, err := exec.Command("go", "build", "-ldflags", "-X troupe/persistence.mutant=nosync", "-o", path, "troupe/cmd/troupe").CombinedOutput()
	require.NoError(t, err, "build the program with the bug, %s", out)
	return path
}

// seed is where all chance of a run comes from, except what the two processes
// do to each other.
func seed(t testing.TB) uint64 {
	t.Helper()
	s := uint64(1)
	if text := os.Getenv("TROUPE_TEST_SEED"); text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "TROUPE_TEST_SEED")
	}
	t.Logf("TROUPE_TEST_SEED=%d", s)
	return s
}

func (k killing) run(t *testing.T, l *ledger) (got *killed) {
	t.Helper()
	got = &killed{}
	random := rand.New(rand.NewPCG(k.seed, math.MaxUint64))
	files := portalFiles()
	files["workflows/load.yaml"] = loadFlow
	p := launch(t, newHome(t, files), k.binary)
	p.ready()
	token := p.home.token("ann")
	inspector := p.as(token)
	workers := newWorkers(k.workers, l, token, k.seed)
	g := newGate()
	var done sync.WaitGroup
	for _, w := range workers {
		done.Go(func() { g.work(w) })
	}
	defer func() {
		g.end()
		done.Wait()
	}()
	for got.kills < k.kills {
		least := l.acknowledged() + max(k.workers, k.kills)
		g.open(p.address())
		withForms := got.kills < formKills || k.untilLoss
		if withForms {
			got.forms.begin(p, random)
		}
		pause(logUniform(random, 5*time.Millisecond, 500*time.Millisecond))
		// Before the first kill there is some load, however slow the machine is. The control needs something each
		// time that an early acknowledgement loses.
		if got.kills == 0 || k.untilLoss {
			p.await("acknowledgements", func() bool { return l.acknowledged() >= least && got.forms.count() >= 5 })
		}
		k.kill(p, got.kills)
		got.kills++
		g.shut(len(workers))
		p = k.recover(p, random, got)
		if withForms {
			got.found.lost = append(got.found.lost, got.forms.check(t, p)...)
		}
		inspector.Client = p.Client
		instances, keys := l.due(random, 10, 20)
		if k.untilLoss { // it is in what was acknowledged last, which a sample may leave out
			instances, keys = l.all(random, math.MaxInt)
		}
		got.check(t, inspector, l, instances, keys)
		if k.untilLoss && len(got.found.lost) > 0 {
			return got
		}
	}
	g.open(p.address())
	g.end() // what is unknown is asked again until it is definite
	done.Wait()
	instances, keys := l.all(random, 2000)
	got.check(t, inspector, l, instances, keys)
	got.checkList(t, inspector, l)
	if !k.untilLoss {
		p.stop()
	}
	return got
}

// formKills is how many kills forms see: each is looked at after all of them.
const formKills = 6

// kill ends the program at any moment; now and then it stands still before.
func (k killing) kill(p *program, number int) {
	if number%50 == 49 {
		_ = p.cmd.Process.Signal(syscall.SIGSTOP)
		pause(2 * time.Second)
	}
	p.quiet = true // its log says nothing about its end
	p.kill()
}

// recover starts the program again, after some more kills during the start.
func (k killing) recover(p *program, random *rand.Rand, got *killed) *program {
	for random.IntN(4) == 0 && got.kills < k.kills {
		p = launch(p.t, p.home, k.binary)
		pause(logUniform(random, time.Millisecond, 100*time.Millisecond))
		p.quiet = true
		p.kill()
		got.kills++
		got.inStart++
	}
	begin := time.Now()
	p = launch(p.t, p.home, k.binary, variants[random.IntN(len(variants))]...)
	p.ready()
	got.recoveries = append(got.recoveries, time.Since(begin))
	return p
}

// variants are settings that must not change any answer: instances that go to
// sleep with every sweep, and writes that become tables all the time.
var variants = [][]string{
	nil, {"--idle-after", "1ms"}, {"--mem-table-bytes", "65536"}, {"--idle-after", "1ms", "--mem-table-bytes", "65536"},
}

// check looks at the credential and at instances, and repeats requests that were
// acknowledged.
func (got *killed) check(t *testing.T, u user, l *ledger, instances []string, keys []*promise) {
	t.Helper()
	address, err := u.Address()
	require.NoError(t, err)
	one := link{credential: u.Credential[0]}
	defer one.close()
	ask := func(what string, r request) answer {
		t.Helper()
		for late := time.Now().Add(WholeMax); ; pause(lookEach) {
			a, err := one.do(address, r)
			if !got.inCluster || err == nil && !mayPass(a.Status) || time.Now().After(late) {
				require.NoError(t, err, what)
				return a
			}
		}
	}
	if a := ask("the choices", request{Method: "GET", Path: wiretest.Root + "/choices", Headers: u.Credential}); a.Status != 200 {
		got.found.lost = append(got.found.lost, fmt.Sprintf("the token: %d %s", a.Status, a.Body))
		return
	}
	for _, id := range instances {
		got.found.add(l.check(id, ask(id, request{Method: "GET", Path: wiretest.Root + "/instance/load/" + id, Headers: u.Credential})))
	}
	for _, p := range keys {
		a := ask(p.key, p.ask(one.credential))
		got.repeats++
		if r, err := a.ReadRecord(); err != nil || len(r.History) != p.position || p.sum != [32]byte{} && sumOf(a) != p.sum { // a batch shows no record
			got.found.lost = append(got.found.lost, fmt.Sprintf("the repeat of %s got another answer: %d %s", p.key, a.Status, a.Body))
		}
	}
}

// checkList compares the list of all instances with the creates: by the end,
// all of them are definite.
func (got *killed) checkList(t *testing.T, u user, l *ledger) {
	t.Helper()
	body := wiretest.Decode[struct{ Instances []wiretest.Record }](t, u.Get(t, wiretest.Root+"/instances/load").Body)
	seen := map[string]string{}
	for _, r := range body.Instances {
		key := loadDataOf(&r).Key
		if other := seen[key]; other != "" {
			got.found.doubled = append(got.found.doubled, fmt.Sprintf("create %s made %s and %s", key, other, r.ID))
		}
		seen[key] = r.ID
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.mu.created {
		if seen[p.key] != id {
			got.found.lost = append(got.found.lost, fmt.Sprintf("create %s made %s, the list has %q", p.key, id, seen[p.key]))
		}
		delete(seen, p.key)
	}
	for key, id := range seen {
		got.found.broken = append(got.found.broken, fmt.Sprintf("the list has %s of create %s, which nobody got an answer to", id, key))
	}
}

// logUniform draws a duration so that each order of magnitude is as likely.
func logUniform(random *rand.Rand, least, most time.Duration) time.Duration {
	span := math.Log(float64(most) / float64(least))
	return time.Duration(float64(least) * math.Exp(random.Float64()*span))
}

// pause lets the load run. It is the harness's dice, not a way to wait for
// something.
func pause(d time.Duration) { <-time.After(d) }

func percentile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
}
