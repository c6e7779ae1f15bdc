package main

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"troupe/actors/identity"
	"troupe/statemachine"
	"troupe/statemachine/document"
)

// Values of settings, by unit. Each reads and shows what its target holds.

func text(to *string) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) { f.StringVar(to, name, *to, "") })
}

func boolean(to *bool) pflag.Value {
	return plain(func(f *pflag.FlagSet, name string) { f.BoolVar(to, name, *to, "") })
}

// rate is a number a second.
func rate(to *float64) pflag.Value {
	return &value[float64]{
		to, "float64",
		func(s string) (float64, error) {
			r, err := strconv.ParseFloat(s, 64)
			if err != nil || math.IsNaN(r) || math.IsInf(r, 0) || r < 0 {
				return 0, errors.New("must be a number from 0 on, such as 0.5 or 20")
			}
			return r, nil
		},
		func(r float64) string { return strconv.FormatFloat(r, 'g', -1, 64) },
	}
}

// count is a whole number.
func count[T int | int64](to *T) pflag.Value {
	return &value[T]{
		to, "int",
		func(s string) (T, error) {
			n, err := strconv.ParseInt(s, 0, 64)
			if err != nil || n < 0 || int64(T(n)) != n {
				return 0, errors.New("must be a whole number from 0 on")
			}
			return T(n), nil
		},
		func(n T) string { return strconv.FormatInt(int64(n), 10) },
	}
}

// sequence is the sequence number of an instance, also as the ETag that has it.
func sequence(to *uint64) pflag.Value {
	return &value[uint64]{
		to, "uint64",
		func(s string) (uint64, error) {
			if len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' {
				s = s[1 : len(s)-1]
			}
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n == 0 {
				return 0, errors.New("must be a sequence number such as 2; they begin with 1")
			}
			return n, nil
		},
		func(n uint64) string { return strconv.FormatUint(n, 10) },
	}
}

// plain is a value of a type that pflag has.
func plain(declare func(f *pflag.FlagSet, name string)) pflag.Value {
	const name = "value"
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	declare(f, name)
	return f.Lookup(name).Value
}

// checked is a value that takes only what passes a check.
func checked(v pflag.Value, check func(string) error) pflag.Value { return &checkedValue{v, check} }

type checkedValue struct {
	pflag.Value
	check func(string) error
}

func (v *checkedValue) Set(s string) error {
	if err := v.check(s); err != nil {
		return err
	}
	return v.Value.Set(s)
}

// value is a setting of a type that pflag does not have.
type value[T any] struct {
	to    *T
	kind  string // what --help shows for it
	parse func(string) (T, error)
	show  func(T) string
}

func (v *value[T]) Set(s string) error {
	parsed, err := v.parse(s)
	if err == nil {
		*v.to = parsed
	}
	return err
}

func (v *value[T]) String() string { return v.show(*v.to) }

// Type is what --help shows for the value.
func (v *value[T]) Type() string { return v.kind }

// duration is a time: Go's units, and d for days of 24 h.
func duration(to *time.Duration) pflag.Value {
	return &value[time.Duration]{to, "time", parseDuration, showDuration}
}

// parseDuration reads a time such as 90s, 1h30m, 30d or 1d12h.
func parseDuration(s string) (time.Duration, error) {
	wrong := errors.New("must be a time such as 90s, 1h30m, 12h or 30d")
	var total time.Duration
	if days, rest, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseUint(days, 10, 16) // so many days fit into a Duration
		if err != nil {
			return 0, wrong
		}
		if total = time.Duration(n) * 24 * time.Hour; rest == "" {
			return total, nil
		}
		s = rest
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || total+d < total {
		return 0, wrong
	}
	return total + d, nil
}

// showDuration writes whole days as days, and leaves out what is zero: 7d, 12h, 1m30s.
func showDuration(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(days)) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes, with or without a unit.
func size(to *int64) pflag.Value { return &value[int64]{to, "bytes", parseSize, showSize} }

var byteUnits = []struct {
	suffix string
	shift  int
}{{"GiB", 30}, {"MiB", 20}, {"KiB", 10}}

func parseSize(s string) (int64, error) {
	digits, shift := s, 0
	for _, unit := range byteUnits {
		if rest, found := strings.CutSuffix(s, unit.suffix); found {
			digits, shift = rest, unit.shift
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errors.New("must be a number of bytes such as 4096, 64KiB, 1MiB or 2GiB")
	}
	return int64(n << shift), nil
}

// showSize uses the largest unit that loses nothing.
func showSize(bytes int64) string {
	for _, unit := range byteUnits {
		if n := bytes >> unit.shift; n > 0 && n<<unit.shift == bytes {
			return strconv.FormatInt(n, 10) + unit.suffix
		}
	}
	return strconv.FormatInt(bytes, 10)
}

// prefixes is a list of ranges of addresses, separated by commas. An address alone is
// a range of one.
// prefixesType is the type of settings that name networks.
const prefixesType = "addresses"

func prefixes(to *[]netip.Prefix) pflag.Value {
	return &value[[]netip.Prefix]{to, prefixesType, parsePrefixes, showPrefixes}
}

func parsePrefixes(s string) (list []netip.Prefix, err error) {
	if s == "" {
		return nil, nil
	}
	for element := range strings.SplitSeq(s, ",") {
		element = strings.TrimSpace(element)
		address, err := netip.ParseAddr(element)
		prefix := netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		if err != nil {
			prefix, err = netip.ParsePrefix(element)
		}
		// NB: a range has no zone; netip takes everything behind a % for one.
		if err != nil || !prefix.IsValid() || prefix.Addr().Is4In6() || address.Zone() != "" {
			return nil, errors.New("must be addresses or ranges such as 10.0.0.5,192.168.0.0/16, separated by commas")
		}
		list = append(list, prefix.Masked())
	}
	return list, nil
}

// showPrefixes writes every range with its length.
func showPrefixes(list []netip.Prefix) string {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// words is a list of words, separated by blanks.
func words(to *[]string) pflag.Value {
	return &value[[]string]{
		to, "string",
		func(s string) ([]string, error) { return strings.Fields(s), nil }, // NB: without a word empty, not nil: nil would be the default
		func(list []string) string { return strings.Join(list, " ") },
	}
}

// secretType is the type of settings that are not shown, and that can stand in a
// file of their own.
const secretType = "secret"

// notShown stands for a secret.
const notShown = "(not shown)"

// secret is such a setting. Only whether there is one is shown.
func secret(to *string) pflag.Value {
	return &value[string]{
		to, secretType,
		func(s string) (string, error) { return s, nil },
		func(s string) string {
			if s == "" {
				return ""
			}
			return notShown
		},
	}
}

// rolesType is the type of the one setting that is not a single value.
const rolesType = "roles"

// roles maps texts to roles: {staff: employee, heads: [manager, employee]}, in YAML or
// JSON.
func roles(to *map[string][]identity.RoleID) pflag.Value {
	return &value[map[string][]identity.RoleID]{to, rolesType, parseRoles, showRoles}
}

var errRoles = errors.New("must map values to roles, such as {staff: employee, heads: [manager, employee]}")

func parseRoles(s string) (map[string][]identity.RoleID, error) {
	n, err := document.Parse("roles", []byte(s))
	if err != nil || n.Kind != document.Mapping && n.Kind != document.Null {
		return nil, errRoles
	}
	of := map[string][]identity.RoleID{}
	for _, f := range n.Fields {
		items := []*document.Node{f.Value}
		if f.Value.Kind == document.Sequence {
			items = f.Value.Items
		}
		for _, item := range items {
			if item.Kind != document.String || !statemachine.IsIdentifier(item.Text) {
				return nil, errRoles
			}
			of[f.Key.Text] = append(of[f.Key.Text], identity.RoleID(item.Text))
		}
	}
	return of, nil
}

// showRoles writes JSON in one line, sorted by value.
func showRoles(of map[string][]identity.RoleID) string {
	if len(of) == 0 {
		return ""
	}
	text, err := json.Marshal(of)
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}

// endpointsType is the type of the setting that maps workflows and their webhooks to endpoints.
const endpointsType = "endpoints"

// endpoint is what webhooks.endpoints says of a webhook.
type endpoint struct {
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Secret     string            `json:"secret,omitempty"`
	SecretFile string            `json:"secretFile,omitempty"`
}

// endpointMap has them by workflow and name.
type endpointMap map[string]map[string]endpoint

func endpoints(to *endpointMap) pflag.Value {
	return &value[endpointMap]{to, endpointsType, parseEndpoints, showEndpoints}
}

// parseEndpoints reads YAML or JSON: {WORKFLOW: {WEBHOOK: {url, headers, secret, secretFile}}}.
func parseEndpoints(s string) (endpointMap, error) {
	n, err := document.Parse(endpointsType, []byte(s))
	if err != nil {
		return nil, errors.New("must map workflows to webhooks, and those to url, headers, secret or secretFile")
	}
	if n.Kind == document.Null {
		return nil, nil
	}
	faults := &document.Collector{File: endpointsType}
	of := readEndpoints(faults, n)
	for _, f := range faults.Faults() {
		f.File, f.Line = "", 0 // it is one line
		return nil, errors.New(strings.TrimPrefix(f.Error(), ": "))
	}
	return of, nil
}

func readEndpoints(faults *document.Collector, n *document.Node) endpointMap {
	of := endpointMap{}
	for _, w := range fieldsOf(faults, n) {
		of[w.Key.Text] = map[string]endpoint{}
		for _, h := range fieldsOf(faults, w.Value) {
			of[w.Key.Text][h.Key.Text] = readEndpoint(faults, h.Value)
		}
	}
	return of
}

func fieldsOf(faults *document.Collector, n *document.Node) []document.Field {
	if n.Kind != document.Mapping {
		faults.Add(n, "must be a mapping")
		return nil
	}
	return n.Fields
}

func readEndpoint(faults *document.Collector, n *document.Node) (e endpoint) {
	if len(fieldsOf(faults, n)) == 0 {
		return e
	}
	faults.Known(n, "url", "headers", "secret", "secretFile")
	for key, to := range map[string]*string{"url": &e.URL, "secret": &e.Secret, "secretFile": &e.SecretFile} {
		if at := n.Field(key); at != nil {
			*to = faults.Text(at)
		}
	}
	if at := n.Field("headers"); at != nil {
		e.Headers = map[string]string{}
		for _, h := range fieldsOf(faults, at) {
			e.Headers[h.Key.Text] = faults.Text(h.Value)
		}
	}
	if e.URL != "" {
		if err := statemachine.CheckWebhookURL(e.URL); err != nil {
			faults.Add(n.Field("url"), "%v", err)
		}
	}
	if e.Secret != "" && e.SecretFile != "" {
		faults.Add(n, "secret and secretFile are both set")
	}
	return e
}

// showEndpoints writes JSON in one line. Values of headers and secrets are not shown.
func showEndpoints(of endpointMap) string {
	if len(of) == 0 {
		return ""
	}
	shown := endpointMap{}
	for workflow, hooks := range of {
		shown[workflow] = map[string]endpoint{}
		for name, e := range hooks {
			headers := map[string]string{}
			for h := range e.Headers {
				headers[h] = notShown
			}
			e.Headers = headers
			if e.Secret != "" {
				e.Secret = notShown
			}
			shown[workflow][name] = e
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error() // strings always can be written
	}
	return string(text)
}
