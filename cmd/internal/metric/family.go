package metric

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"troupe/actors/cluster"
)

// family is one metric, with a sample for each combination of its labels' values.
type family struct {
	Description
	kind    prometheus.ValueType
	samples []sample
}

type sample struct {
	value  float64
	labels []string
}

// Description says what a metric is.
type Description struct {
	Name, Type string
	Labels     []string
	Help       string
}

type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// of is a sample with the values of the family's labels.
func of[N number](value N, labels ...string) sample { return sample{float64(value), labels} }

func gauge[N number](name, help string, value N) family {
	return gauges(name, help, nil, of(value))
}

func counter[N number](name, help string, value N) family {
	return counters(name, help, nil, of(value))
}

func gauges(name, help string, labels []string, samples ...sample) family {
	return family{Description{name, "gauge", labels, help}, prometheus.GaugeValue, samples}
}

func counters(name, help string, labels []string, samples ...sample) family {
	return family{Description{name, "counter", labels, help}, prometheus.CounterValue, samples}
}

// collector shows the table of what it reads.
type collector func() *Readings

// Describe has nothing, so that the registry checks what is collected.
func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(to chan<- prometheus.Metric) {
	all := c()
	for _, f := range all.families() {
		desc := prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
		for _, s := range f.samples {
			to <- prometheus.MustNewConstMetric(desc, f.kind, s.value, s.labels...)
		}
	}
	buckets := map[float64]uint64{}
	for bound, n := range all.Store.Syncs.Buckets {
		buckets[bound.Seconds()] = n
	}
	to <- prometheus.MustNewConstHistogram(prometheus.NewDesc(syncName, syncHelp, nil, nil), all.Store.Syncs.Count, all.Store.Syncs.Sum.Seconds(), buckets)
}

// Descriptions has every metric with the prefix troupe_ of a node of a cluster, by name.
func Descriptions() (all []Description) {
	r := Readings{Node: &cluster.Metrics{}}
	for _, f := range r.families() {
		all = append(all, f.Description)
	}
	all = append(all, Description{latencyName, "histogram", latencyLabels, latencyHelp}, Description{syncName, "histogram", nil, syncHelp})
	slices.SortFunc(all, func(a, b Description) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
