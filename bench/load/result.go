package load

import (
	"os"
	"time"

	"troupe/bench/process"
)

// Result is what a run measured, as the JSON of a report has it. What is null is not known.
type Result struct {
	// RatePerSecond is that of an open loop; 0: closed.
	RatePerSecond float64 `json:"ratePerSecond"`
	// DurationSeconds is how long was measured: Options.Duration, or less when ctx ended before.
	DurationSeconds float64 `json:"durationSeconds"`

	// Requests are those that were answered as they should be while the window was open, and Operations what was
	// carried out by them: each event of a batch counts.
	Operations          int64   `json:"operations"`
	OperationsPerSecond float64 `json:"operationsPerSecond"`
	Requests            int64   `json:"requests"`
	RequestsPerSecond   float64 `json:"requestsPerSecond"`
	// Latency is that of the requests that were answered as they should be, and Kinds has those of each kind. In a
	// closed loop they are those of Requests. In an open one they are those of what was due in the window, also when it
	// was answered later: at a rate that is too high, fewer than Requests, and none if the window was over before what
	// had waited since the warm-up was sent.
	Latency Latency            `json:"latency"`
	Kinds   map[string]Summary `json:"kinds"`

	// Shed are answers 503 and 429 that were due or came in the window: the server was busy and did nothing. Each event
	// of a batch counts, here and in Errors.
	Shed int64 `json:"shed"`
	// Missed are requests of an open loop that were due in the window and for which no
	// connection became free. They are in no latency: if there are any, the rate was too high.
	Missed int64 `json:"missed"`
	// Errors counts everything else that was due or came in the window, and requests that
	// had no answer until its end, by its text. Figures of a run that has any say little.
	ErrorsTotal int64            `json:"errorsTotal"`
	Errors      map[string]int64 `json:"errors"`

	// The longest time of the window without a right answer, to the millisecond, and when it began.
	LongestGapSeconds   float64 `json:"longestGapSeconds"`
	LongestGapAtSeconds float64 `json:"longestGapAtSeconds"`

	ServerCPUMicrosPerOperation    *float64 `json:"serverCpuMicrosPerOperation"`
	ServerCPUCores                 *float64 `json:"serverCpuCores"`
	ServerResidentBytes            *int64   `json:"serverResidentBytes"` // at the end
	GeneratorCPUMicrosPerOperation *float64 `json:"generatorCpuMicrosPerOperation"`
	GeneratorCPUCores              *float64 `json:"generatorCpuCores"`

	// Series is the window in intervals, if Options.Every asked for it.
	Series      []Interval   `json:"series"`
	Percentiles []Percentile `json:"percentiles"`

	// All is what Latency is about. Refused are the answers of Shed to what was due in the window.
	All     Summary `json:"-"`
	Refused Summary `json:"-"`
	// Latencies are those of All.
	Latencies Histogram `json:"-"`
}

// Interval is what happened in a part of the window, of whose begin the times count. What happened is counted by when
// the answers came. There may be one more interval behind the window: for answers of an
// open loop to what was due in it, and for requests that had no answer.
type Interval struct {
	BeganSeconds        float64  `json:"beganSeconds"`
	EndedSeconds        float64  `json:"endedSeconds"`
	OperationsPerSecond float64  `json:"operationsPerSecond"`
	Requests            int64    `json:"requests"`
	Latency             Latency  `json:"latency"`
	Shed                int64    `json:"shed"`
	Errors              int64    `json:"errors"`
	ServerCPUCores      *float64 `json:"serverCpuCores"`
	ServerResidentBytes *int64   `json:"serverResidentBytes"`

	Operations int64 `json:"-"`
}

func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func total(errors map[string]int64) (n int64) {
	for _, count := range errors {
		n += count
	}
	return n
}

// usage is the processor time that a process has used; nil when it cannot be read.
type usage *time.Duration

func usageOf(pid int) usage {
	used, err := process.ProcessorTime(pid)
	if pid == 0 || err != nil {
		return nil
	}
	return &used
}

// usages are those of the server and of this program.
type usages struct{ server, generator usage }

func (o *Options) usages() usages { return usages{usageOf(o.PID), usageOf(os.Getpid())} }

// cores is how many processors were used from one moment to another.
func cores(from, to usage, length time.Duration) *float64 {
	if from == nil || to == nil || length <= 0 {
		return nil
	}
	n := (*to - *from).Seconds() / length.Seconds()
	return &n
}

// cost notes what was used between the edges of the window.
func (r *Result) cost(pid int, from, to usages, window time.Duration) {
	each := func(cores *float64) *float64 {
		if cores == nil || r.Operations == 0 {
			return nil
		}
		micros := *cores * float64(window.Microseconds()) / float64(r.Operations)
		return &micros
	}
	r.ServerCPUCores, r.GeneratorCPUCores = cores(from.server, to.server, window), cores(from.generator, to.generator, window)
	r.ServerCPUMicrosPerOperation, r.GeneratorCPUMicrosPerOperation = each(r.ServerCPUCores), each(r.GeneratorCPUCores)
	r.ServerResidentBytes = residentBytes(pid)
}

// residentBytes is the memory of a process; nil when it cannot be read.
func residentBytes(pid int) *int64 {
	if pid == 0 {
		return nil
	}
	bytes := process.ResidentBytes(pid)
	if bytes == 0 {
		return nil
	}
	return &bytes
}
