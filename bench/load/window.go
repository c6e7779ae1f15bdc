package load

import "time"

type window struct {
	begin, end time.Time
	open       bool // an open loop
}

type part struct {
	// came: it was answered inside. By that, what the server does in the window is counted:
	// requests of an open loop may have waited since the warm-up for their connection.
	came bool
	// due: its latency counts. In a closed loop that is the same; in an open one it was
	// due inside, so that a slow answer cannot fall out of the latencies.
	due bool
}

func (w *window) part(begun, ended time.Time) part {
	came := w.contains(ended)
	if !w.open {
		return part{came, came}
	}
	return part{came, w.contains(begun)}
}

func (w *window) contains(at time.Time) bool { return !at.Before(w.begin) && at.Before(w.end) }
