package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	logLevel, logFormat                          string

	idleAfter                        time.Duration
	inFlightMax, instanceInFlightMax int
	connectionsMax, requestsMax      int
	queriesMax, watchersMax          int
	queryTimeMax                     time.Duration
	drainDelay, drainMax             time.Duration
	shards                           int
	cacheBytes, memTableBytes        int64
	freeBytesMin                     int64
	commitWaitMax                    time.Duration

	flags   *pflag.FlagSet    // one flag for each setting; holds the values
	sources map[string]string // by flag name: where the value comes from
}

// newConfigFlags declares every setting with its default and a line of help. The key
// in troupe.yaml is the flag's name in camel case, the environment variable the
// same in capitals: base-path is basePath and TROUPE_BASE_PATH.
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
	f.StringVar(&c.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&c.logFormat, "log-format", "auto", "json, text, or auto: text on a terminal")
	f.Var(durationOf(&c.idleAfter, time.Minute), "idle-after", "an instance goes to sleep when nothing asked it for so long")
	f.IntVar(&c.inFlightMax, "in-flight-max", 16_384, "requests at instances at a time; more are answered with 503")
	f.IntVar(&c.instanceInFlightMax, "instance-in-flight-max", 256, "requests at one instance at a time; more are answered with 429")
	f.IntVar(&c.connectionsMax, "connections-max", 16_384, "open connections; more wait to be accepted")
	f.IntVar(&c.requestsMax, "requests-max", 2_048, "requests worked on at a time; more are answered with 503")
	f.IntVar(&c.queriesMax, "queries-max", 2, "queries that run at a time")
	f.IntVar(&c.watchersMax, "watchers-max", 1_000, "streams of events that are open at a time; more are answered with 503")
	f.Var(durationOf(&c.queryTimeMax, time.Minute), "query-time-max", "how long a query may run")
	f.Var(durationOf(&c.drainDelay, 0), "drain-delay", "after SIGTERM, how long new requests get 503 before the port closes")
	f.Var(durationOf(&c.drainMax, 8*time.Second), "drain-max", "after SIGTERM, how long accepted requests may take")
	f.IntVar(&c.shards, "shards", 0, "key ranges of a new store; 0: 16; fixed once the store exists")
	f.Var(bytesOf(&c.cacheBytes, 128<<20), "cache-bytes", "memory for stored blocks")
	f.Var(bytesOf(&c.memTableBytes, 32<<20), "mem-table-bytes", "writes gathered in memory before they become a table")
	f.Var(bytesOf(&c.freeBytesMin, 512<<20), "free-bytes-min", "free disk space below which nothing is accepted")
	f.Var(durationOf(&c.commitWaitMax, 10*time.Second), "commit-wait-max", "how long a commit may take before its outcome counts as unknown")
	return c
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
		if value, ok := os.LookupEnv(envName(f.Name)); ok && !f.Changed {
			faults = append(faults, c.set(f.Name, value, envName(f.Name)))
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
	known, names := []string{}, map[string]string{}
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "home" {
			known = append(known, keyName(f.Name))
			names[keyName(f.Name)] = f.Name
		}
	})
	faults := document.Collector{File: settingsFile}
	faults.Known(tree, known...)
	for _, field := range tree.Fields {
		name, ok := names[field.Key.Text]
		if !ok || c.sources[name] != "default" {
			continue
		}
		switch field.Value.Kind {
		case document.String, document.Number, document.Bool:
			if err := c.set(name, field.Value.Text, settingsFile); err != nil {
				faults.Add(field.Value, "%s: %v", field.Key.Text, err)
			}
		case document.Null:
		default:
			faults.Add(field.Value, "%s: must be a single value", field.Key.Text)
		}
	}
	return faults.Err()
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
	return errors.Join(faults...)
}

// envName is the environment variable of a setting: TROUPE_BASE_PATH.
func envName(flag string) string {
	return "TROUPE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// keyName is the key of a setting in troupe.yaml: basePath.
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
