package trial

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"troupe/bench/load"
	"troupe/bench/process"
	"troupe/bench/report"
)

// Target is a server that is measured: a program that is started on a temporary home, or one that runs already.
type Target struct {
	// Name is what the report calls it.
	Name string
	// Program is the path of a program to start; empty: Address is asked.
	Program string
	// Start starts something else than troupe, which needs no token, in a folder of its own. Default: Program is started.
	Start func(ctx context.Context, dir string) (*process.Process, error)
	// Address is a URL that ParseAddress takes, and Others are those of further nodes of the same cluster, with the same scheme
	// and path.
	Address string
	Others  []string
	// Token is the credential at Address, and Tokens are those of further users of the scenario.
	Token  string
	Tokens map[string]string
	// Scenario and Mix are what is done there; nil and nothing: those of the plan.
	Scenario *load.Scenario
	Mix      load.Mix
	TLS      *tls.Config // whom to trust at https, and with which certificate; nil: what the system trusts, and none
}

// ParseAddress checks the URL of a service: http or https, with a base path or without.
func ParseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case !strings.Contains(text, "://"):
		return nil, fmt.Errorf("must be a URL such as http://%s", cmp.Or(text, "127.0.0.1:8080"))
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, errors.New("must be like http://127.0.0.1:8080 or https://example.org/platform")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must have no user, query or fragment")
	}
	return u, nil
}

// parseOthers checks the URLs of further nodes.
func parseOthers(first *url.URL, texts []string) (all []*url.URL, err error) {
	for _, text := range texts {
		at, err := ParseAddress(text)
		if err != nil {
			return nil, err
		}
		if at.Scheme != first.Scheme || strings.TrimRight(at.EscapedPath(), "/") != strings.TrimRight(first.EscapedPath(), "/") {
			return nil, fmt.Errorf("%s and %s: must have one scheme and one path", first, at)
		}
		all = append(all, at)
	}
	return all, nil
}

// CheckAddresses checks the URLs of a service and of further nodes of its cluster.
func CheckAddresses(first string, others ...string) error {
	at, err := ParseAddress(first)
	if err != nil {
		return fmt.Errorf("%q %w", first, err)
	}
	_, err = parseOthers(at, others)
	return err
}

type server struct {
	*Target
	at      *url.URL
	others  []*url.URL
	process *process.Process // nil: somebody else's
	tokens  map[string]string
}

func (t *Target) start(ctx context.Context, dir string, scenario *load.Scenario) (*server, error) {
	scenario = cmp.Or(t.Scenario, scenario)
	s := &server{Target: t, tokens: t.Tokens}
	var err error
	switch {
	case t.Start != nil:
		s.process, err = t.Start(ctx, dir)
	case t.Program != "":
		home := filepath.Join(dir, "home")
		if err = scenario.WriteHome(home); err == nil {
			s.process, s.tokens, err = process.Serve(ctx, t.Program, home, scenario.UserNames(), "--base-path", "")
		}
	default:
		if s.at, err = ParseAddress(t.Address); err == nil {
			s.others, err = parseOthers(s.at, t.Others)
		}
		return s, err
	}
	if err != nil {
		return nil, err
	}
	s.at = &url.URL{Scheme: "http", Host: s.process.Addr}
	return s, nil
}

func (s *server) stop() {
	if s.process != nil {
		s.process.Stop()
	}
}

// hostPort is where the service at a URL listens.
func hostPort(at *url.URL) string {
	return net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), map[string]string{"http": "80", "https": "443"}[at.Scheme]))
}

func (s *server) aim(o *load.Options) {
	o.Scenario = cmp.Or(s.Scenario, o.Scenario)
	if s.Mix != (load.Mix{}) {
		o.Mix = s.Mix
	}
	o.Addr, o.Host, o.BasePath = hostPort(s.at), s.at.Host, strings.TrimRight(s.at.EscapedPath(), "/")
	o.Others = nil
	for _, at := range s.others {
		o.Others = append(o.Others, hostPort(at))
	}
	o.Token, o.Tokens = s.Token, s.tokens
	if s.process != nil {
		o.PID = s.process.PID()
	}
	if s.at.Scheme == "https" {
		o.TLS = cmp.Or(s.TLS, &tls.Config{}).Clone()
		o.TLS.ServerName, o.TLS.MinVersion = s.at.Hostname(), tls.VersionTLS12
	}
}

const trialEvents = 6

// try lets one instance go through a few events, so that a wrong workflow, a missing
// right or a wrong token is told at once and not as thousands of errors.
func (s *server) try(ctx context.Context, o load.Options) error {
	s.aim(&o)
	o.Connections, o.Instances, o.Preload, o.Batch, o.Rate = 1, 1, trialEvents, 0, 0
	if !o.Scenario.Round() {
		o.Instances = 3 // more of its ways
	}
	o.Mix = load.Mix{load.Read: 1}
	o.WarmUp, o.Duration, o.Every = -1, time.Millisecond, 0
	if _, err := load.Run(ctx, o); err != nil {
		if advice := s.advice(err, o.Scenario); advice != "" {
			return fmt.Errorf("%w\n%s", err, advice)
		}
		return err
	}
	return nil
}

// advice says what may help when the trial failed; empty: the error says it all.
func (s *server) advice(err error, scenario *load.Scenario) string {
	var refused *load.PrepareError
	status := 0
	if errors.As(err, &refused) {
		status = refused.Status
	}
	switch {
	case s.process != nil && status != 0:
		return "" // it runs, and has said what is wrong
	case s.process != nil:
		return "The end of its log:\n" + s.process.LastWords()
	case status == http.StatusBadRequest && scenario.DefinitionFile == "" && scenario.Definition != "":
		return "The service has another workflow of the id " + scenario.WorkflowID + " than the built-in load: troupe bench --print-workflow prints that one. For the leave request of the example home there is a load: --scenario bench/scenarios/leave-request.yaml --as mary=FILE"
	case status != http.StatusForbidden && status != http.StatusNotFound:
		return ""
	}
	return "A few events were tried before measuring. The server must have the workflow of the load, and the token must be of a user who may create, read and send, as must be that of --as USER=FILE for each further user of the scenario: troupe bench --print-workflow, or --scenario FILE for a workflow of yours."
}

func (s *server) describe(ctx context.Context) report.Target {
	t := report.Target{Name: s.Name, Address: s.at.String(), Local: s.process != nil}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, _ := process.Get(ctx, strings.TrimRight(t.Address, "/")+"/readyz?verbose")
	var ready struct {
		Build struct{ Version, Commit, Go string }
	}
	if json.Unmarshal(answer, &ready) == nil && ready.Build.Version != "" {
		t.Build = strings.Join(strings.Fields(ready.Build.Version+" "+ready.Build.Commit+" "+ready.Build.Go), " ")
	}
	return t
}
