package main

import (
	"fmt"
	"strings"

	"troupe/bench/machine"
)

// header is the part of a record above the tables.
func (p *plan) header(f *machine.Facts) string {
	o := p.load
	loop := "closed"
	if o.Rate > 0 {
		loop = fmt.Sprintf("open, %g requests/s", o.Rate)
	}
	return fmt.Sprintf("# Comparison of %s\n\n", f.At.Format("2006-01-02 15:04 UTC")) +
		f.Table("go run ./bench/compare "+strings.Join(p.args, " "), [2]string{"Load", fmt.Sprintf(
			"%s loop, %s, %d new instances a run with %d events before, %d rounds of %s after %s",
			loop, o.Mix, o.Instances, o.Preload, p.rounds, o.Duration, o.WarmUp)})
}
