package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"troupe/actors/home"
	"troupe/actors/quota"
	"troupe/actors/repository"
	"troupe/actors/repository/bucket"
	"troupe/actors/repository/disk"
	"troupe/gateway"
	"troupe/gateway/provider"
	"troupe/statemachine/document"
)

// settingsFile is where settings stand in a home.
const settingsFile = "troupe.yaml"

// config is every setting of the program. It is read once, by load; nothing else
// looks at flags, the environment or troupe.yaml.
type config struct {
	home, listen, admin, basePath, sessionCookie string
	sessionIdle, sessionMax                      time.Duration
	archiveAfter                                 time.Duration
	trustedProxies                               []netip.Prefix
	oidc                                         provider.Options
	oidcScopes                                   string
	bucket                                       bucket.Options
	logLevel, logFormat                          string

	idleAfter                        time.Duration
	awakeBytesMax                    int64
	inFlightMax, instanceInFlightMax int
	connectionsMax, requestsMax      int
	queriesMax, watchersMax          int
	watchersPerUserMax               int
	queryTimeMax                     time.Duration
	drainDelay, drainMax             time.Duration
	quotas                           quota.Limits
	shards                           int
	cacheBytes, memTableBytes        int64
	freeBytesMin                     int64
	commitWaitMax                    time.Duration

	flags   *pflag.FlagSet    // one flag for each setting; holds the values
	sources map[string]string // by flag name: where the value comes from
}

// newConfigFlags declares every setting with its default and a line of help. The key
// in troupe.yaml is the flag's name in camel case, the environment variable the
// same in capitals: base-path is basePath and TROUPE_BASE_PATH. What stands before
// a dot is a group: oidc.client-id is clientId below oidc, and
// TROUPE_OIDC_CLIENT_ID.
func newConfigFlags() *config {
	c := &config{flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), sources: map[string]string{}}
	f := c.flags
	f.SortFlags = false
	f.StringVar(&c.home, "home", "./troupe-home", "folder with the text files and the store")
	f.StringVar(&c.listen, "listen", "127.0.0.1:8080", "address of the service, host:port")
	f.StringVar(&c.admin, "admin", "", "address of metrics and profiles, host:port; empty: off")
	f.StringVar(&c.basePath, "base-path", "", "path in front of every route, such as /platform")
	f.StringVar(&c.sessionCookie, "session-cookie", "session", "name of the session cookie")
	f.Var((*prefixesValue)(&c.trustedProxies), "trusted-proxies", "addresses of the proxies in front, such as 10.0.0.5,192.168.0.0/16: their X-Forwarded-For and -Proto count")
	f.Var(durationOf(&c.archiveAfter, 30*24*time.Hour), "archive-after", "a completed form stays among the submitted ones for so long")
	f.Var(durationOf(&c.sessionIdle, 12*time.Hour), "session-idle", "a session ends when it was not used for so long")
	f.Var(durationOf(&c.sessionMax, 7*24*time.Hour), "session-max", "a session ends after so long in any case")
	c.declareProvider(f)
	c.declareBucket(f)
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&c.logFormat, "log-format", "auto", "json, text, or auto: text on a terminal")
	f.Var(durationOf(&c.idleAfter, time.Minute), "idle-after", "an instance goes to sleep when nothing asked it for so long")
	f.Var(bytesOf(&c.awakeBytesMax, 1<<30), "awake-bytes-max", "memory for awake instances; above it they go to sleep earlier")
	f.IntVar(&c.inFlightMax, "in-flight-max", 16_384, "requests at instances at a time; more are answered with 503")
	f.IntVar(&c.instanceInFlightMax, "instance-in-flight-max", 256, "requests at one instance at a time; more are answered with 429")
	f.IntVar(&c.connectionsMax, "connections-max", 16_384, "open connections; a new one beyond takes the place of an idle one")
	f.IntVar(&c.requestsMax, "requests-max", 2_048, "requests worked on at a time, at most half of them for one user; more are answered with 503")
	f.IntVar(&c.queriesMax, "queries-max", 2, "queries that work at a time")
	f.IntVar(&c.watchersMax, "watchers-max", 1_000, "streams of events that are open at a time; more are answered with 503")
	f.IntVar(&c.watchersPerUserMax, "watchers-per-user-max", 100, "streams of events of one user at a time, at most half of all; more are answered with 503")
	f.Var(durationOf(&c.queryTimeMax, time.Minute), "query-time-max", "how long a query may run")
	f.Float64Var(&c.quotas.EventsPerSecond, "quota.events-per-second", 0, "events that one user may send a second, forms aside; more are answered with 429; 0: no quota")
	f.Float64Var(&c.quotas.CreatesPerSecond, "quota.creates-per-second", 0, "instances that one user may create a second, forms aside; more are answered with 429; 0: no quota")
	f.IntVar(&c.quotas.HistoryEntries, "quota.history-entries", 0, "history entries of one instance, forms aside; an event beyond is answered with 429; 0: no quota")
	f.Var(durationOf(&c.drainDelay, 0), "drain-delay", "after SIGTERM, how long new requests get 503 before the port closes")
	f.Var(durationOf(&c.drainMax, 8*time.Second), "drain-max", "after SIGTERM, how long accepted requests may take")
	f.IntVar(&c.shards, "shards", 0, "key ranges of a new store; 0: 16; fixed once the store exists")
	f.Var(bytesOf(&c.cacheBytes, 128<<20), "cache-bytes", "memory for stored blocks")
	f.Var(bytesOf(&c.memTableBytes, 32<<20), "mem-table-bytes", "writes gathered in memory before they become a table")
	f.Var(bytesOf(&c.freeBytesMin, 512<<20), "free-bytes-min", "free disk space below which nothing is accepted")
	f.Var(durationOf(&c.commitWaitMax, 10*time.Second), "commit-wait-max", "how long a commit may take before its outcome counts as unknown")
	return c
}

// declareProvider declares the settings of the identity provider.
func (c *config) declareProvider(f *pflag.FlagSet) {
	o := &c.oidc
	f.StringVar(&o.Issuer, "oidc.issuer", "", "identity provider to sign in with (OpenID Connect), such as https://login.example.com; empty: none")
	f.StringVar(&o.Name, "oidc.name", "", "what people know the provider by; empty: the issuer's host")
	f.StringVar(&o.ClientID, "oidc.client-id", "", "what the provider knows this service by")
	f.Var((*secretValue)(&o.ClientSecret), "oidc.client-secret", "the secret for it; better in a file, named by TROUPE_OIDC_CLIENT_SECRET_FILE")
	f.StringVar(&o.RedirectURL, "oidc.redirect-url", "", "address of /login/oidc/callback as the provider has it; empty: by the header Host")
	f.StringVar(&c.oidcScopes, "oidc.scopes", "profile email", "scopes to ask for beside openid, separated by blanks")
	f.StringVar(&o.LoginClaim, "oidc.login-claim", "preferred_username", "claim that holds the login name of identity.yaml")
	f.StringVar(&o.LoginDomain, "oidc.login-domain", "", "the claim is like name@domain and must be of this domain; empty: it is the name")
	f.StringVar(&o.RolesClaim, "oidc.roles-claim", "", "claim with a text or a list, such as groups or realm_access.roles; empty: no roles")
	f.Var((*rolesValue)(&o.Roles), "oidc.roles", "roles that its values add to a session, such as {staff: employee, heads: [manager, employee]}")
}

// declareBucket declares the settings of a repository in an object store.
func (c *config) declareBucket(f *pflag.FlagSet) {
	o := &c.bucket
	f.StringVar(&o.Bucket, "repository.bucket", "", "the files are in this bucket of an S3-compatible object store; empty: in the folder repository of the home")
	f.StringVar(&o.Endpoint, "repository.endpoint", "https://s3.amazonaws.com", "address of the object store")
	f.StringVar(&o.Region, "repository.region", "", "where the bucket is; empty: the store is asked")
	f.StringVar(&o.Prefix, "repository.prefix", "", "only what is below this key, such as templates/")
	f.StringVar(&o.AccessKey, "repository.access-key", "", "the key to sign requests with; empty: they are not signed")
	f.Var((*secretValue)(&o.SecretKey), "repository.secret-key", "the secret of it; better in a file, named by TROUPE_REPOSITORY_SECRET_KEY_FILE")
	f.BoolVar(&o.MachineRole, "repository.machine-role", false, "sign with the role that AWS gives to this machine or container, without keys")
	f.Var(durationOf(&o.Poll, 30*time.Second), "repository.poll", "pause between two looks at what has changed in the bucket")
}

// files is where the files of the repository are.
type files interface {
	repository.Source
	io.Closer
}

// newFiles opens them. It reads nothing.
func (c *config) newFiles(log zerolog.Logger) (files, error) {
	if b, err := c.newBucket(log); b != nil || err != nil {
		return b, err
	}
	return disk.Open(disk.Options{Dir: filepath.Join(c.home, home.RepositoryFolder), Log: log})
}

// newBucket makes the client of the object store with the files; nil when they are
// in the home.
func (c *config) newBucket(log zerolog.Logger) (*bucket.Bucket, error) {
	if c.bucket.Bucket == "" {
		return nil, nil
	}
	o := c.bucket
	o.Log = log
	b, err := bucket.Open(o)
	if err != nil {
		return nil, fmt.Errorf("the settings of the repository: %w", err)
	}
	return b, nil
}

// newGateway makes the server of the main listener. It opens nothing.
func (c *config) newGateway(log zerolog.Logger) (*gateway.Server, error) {
	if _, _, err := net.SplitHostPort(c.listen); err != nil {
		return nil, fmt.Errorf("the setting listen: %w", err)
	}
	return gateway.New(gateway.Options{
		Build: buildOf(buildInfo()).forGateway(),
		Addr:  c.listen, BasePath: c.basePath, SessionCookie: c.sessionCookie, TrustedProxies: c.trustedProxies,
		ConnectionsMax: c.connectionsMax, InFlightMax: int64(c.requestsMax), WatchersMax: int64(c.watchersMax),
		WatchersPerUserMax: int64(c.watchersPerUserMax),
		DrainDelay:         c.drainDelay, DrainMax: c.drainMax, Log: log,
	})
}

// newProvider makes the client of the identity provider; nil when there is none.
func (c *config) newProvider(log zerolog.Logger) (*provider.Client, error) {
	if c.oidc.Issuer == "" {
		return nil, nil
	}
	o := c.oidc
	o.Scopes, o.Log = strings.Fields(c.oidcScopes), log
	return provider.New(o)
}

func durationOf(to *time.Duration, standard time.Duration) *durationValue {
	*to = standard
	return (*durationValue)(to)
}

func bytesOf(to *int64, standard int64) *bytesValue {
	*to = standard
	return (*bytesValue)(to)
}

// load fills in what no flag said: from the environment, then from troupe.yaml.
func (c *config) load() error {
	var faults []error
	c.flags.VisitAll(func(f *pflag.Flag) {
		c.sources[f.Name] = "default"
		if f.Changed {
			c.sources[f.Name] = "flag"
		}
	})
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			return
		}
		if value, ok := os.LookupEnv(envName(f.Name)); ok {
			faults = append(faults, c.set(f.Name, value, envName(f.Name)))
		}
		if f.Value.Type() == secretType {
			faults = append(faults, c.loadSecret(f.Name))
		}
	})
	faults = append(faults, c.loadFile())
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return c.validate()
}

func (c *config) set(name, value, source string) error {
	if err := c.flags.Set(name, value); err != nil {
		return fmt.Errorf("%s: %w", source, errors.Unwrap(err))
	}
	c.sources[name] = source
	return nil
}

// loadSecret reads a secret from the file that the environment names. Its last
// line end is not part of it.
func (c *config) loadSecret(name string) error {
	source := envName(name) + "_FILE"
	file, ok := os.LookupEnv(source)
	switch {
	case !ok:
		return nil
	case c.sources[name] != "default":
		return fmt.Errorf("%s and %s are both set", envName(name), source)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return c.set(name, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), source)
}

// loadFile reads troupe.yaml of the home, which may be missing.
func (c *config) loadFile() error {
	text, err := os.ReadFile(filepath.Join(c.home, settingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	tree, err := document.Parse(settingsFile, text)
	if err != nil {
		return err
	}
	if tree.Kind == document.Null {
		return nil
	}
	names := map[string]string{} // of flags, by key
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "home" {
			names[keyName(f.Name)] = f.Name
		}
	})
	faults := document.Collector{File: settingsFile}
	c.loadFields(&faults, tree, "", names)
	return faults.Err()
}

// loadFields takes over the members of a mapping. above is the group that it is,
// with a dot behind it; empty for the whole file.
func (c *config) loadFields(faults *document.Collector, n *document.Node, above string, names map[string]string) {
	known := map[string]bool{}
	for key := range names {
		if rest, ok := strings.CutPrefix(key, above); ok {
			first, _, _ := strings.Cut(rest, ".")
			known[first] = true
		}
	}
	faults.Known(n, slices.Sorted(maps.Keys(known))...)
	for _, field := range n.Fields {
		key, value := above+field.Key.Text, field.Value
		name, isSetting := names[key]
		switch {
		case !isSetting && known[field.Key.Text] && value.Kind == document.Mapping:
			c.loadFields(faults, value, key+".", names)
		case !isSetting && known[field.Key.Text] && value.Kind != document.Null:
			faults.Add(value, "%s: must be a group of settings", key)
		case isSetting && c.sources[name] == "default":
			c.loadValue(faults, name, key, value)
		}
	}
}

// loadValue takes over one setting.
func (c *config) loadValue(faults *document.Collector, name, key string, value *document.Node) {
	structured, isStructured := c.flags.Lookup(name).Value.(interface{ setNode(*document.Node) error })
	var err error
	switch value.Kind {
	case document.Null:
		return
	case document.String, document.Number, document.Bool:
		err = c.set(name, value.Text, settingsFile)
	default:
		err = errors.New("must be a single value")
		if isStructured {
			err = structured.setNode(value)
		}
	}
	if err != nil {
		faults.Add(value, "%s: %v", key, err)
		return
	}
	c.sources[name] = settingsFile
}

func (c *config) validate() error {
	var faults []error
	if _, err := zerolog.ParseLevel(c.logLevel); err != nil {
		faults = append(faults, fmt.Errorf("log-level %q: must be debug, info, warn or error", c.logLevel))
	}
	switch c.logFormat {
	case "auto", "json", "text":
	default:
		faults = append(faults, fmt.Errorf("log-format %q: must be json, text or auto", c.logFormat))
	}
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{{"session-idle", c.sessionIdle}, {"session-max", c.sessionMax}} {
		if limit.value < time.Second { // NB: package identity takes a zero for its own default
			faults = append(faults, fmt.Errorf("%s %v: must be at least 1s", limit.name, limit.value))
		}
	}
	if err := c.quotas.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("quota: %w", err))
	}
	for _, first := range []string{"oidc.issuer", "repository.bucket"} { // without it the rest of its group means nothing
		if c.flags.Lookup(first).Value.String() != "" {
			continue
		}
		group, _, _ := strings.Cut(first, ".")
		c.flags.VisitAll(func(f *pflag.Flag) {
			if strings.HasPrefix(f.Name, group+".") && f.Name != first && c.sources[f.Name] != "default" {
				faults = append(faults, fmt.Errorf("%s is set, but %s is not", keyName(f.Name), first))
			}
		})
	}
	return errors.Join(faults...)
}

// envName is the environment variable of a setting: TROUPE_BASE_PATH.
func envName(flag string) string {
	return "TROUPE_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

// keyName is the key of a setting in troupe.yaml: basePath, or oidc.clientId for
// clientId below oidc.
func keyName(flag string) string {
	words := strings.Split(flag, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// logger writes to standard error.
func (c *config) logger() zerolog.Logger {
	level, _ := zerolog.ParseLevel(c.logLevel) // validate has looked at it
	text := c.logFormat == "text"
	if c.logFormat == "auto" {
		st, err := os.Stderr.Stat()
		text = err == nil && st.Mode()&os.ModeCharDevice != 0
	}
	if text {
		return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, TimeFormat: time.TimeOnly}).Level(level).With().Timestamp().Logger()
	}
	return zerolog.New(os.Stderr).Level(level).With().Timestamp().Logger()
}

func newConfig() *cobra.Command {
	c := newConfigFlags()
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value, where it comes from and what it means",
		Example: "  troupe config --home ./troupe-home\n" +
			"  TROUPE_LISTEN=:9000 troupe config",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.load(); err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "KEY\tVALUE\tSOURCE\tENVIRONMENT\tMEANING")
			c.flags.VisitAll(func(f *pflag.Flag) {
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", keyName(f.Name), f.Value, c.sources[f.Name], envName(f.Name), f.Usage)
			})
			return w.Flush()
		},
	}
	cmd.Flags().AddFlagSet(c.flags)
	return cmd
}
