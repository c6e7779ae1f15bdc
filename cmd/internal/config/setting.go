// Package config is every setting of the program: the table, where each value comes from, and what is made of the
// settings alone, such as the store of the home, its node of a cluster and the logger. Nothing else looks at the flags,
// the environment or troupe.yaml for a setting.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"troupe/actors/cluster"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/outbox"
	"troupe/actors/repository/bucket"
	"troupe/actors/workflow"
	"troupe/cmd/internal/cli"
	"troupe/gateway"
	"troupe/gateway/certificate"
	"troupe/gateway/provider"
	"troupe/persistence"
)

// Config is every setting of the program. Most of them are fields of the Options of the package that they are for.
type Config struct {
	Home, Admin         string
	LogLevel, logFormat string
	quiet               bool // LoadQuiet

	Gateway  gateway.Options
	Identity identity.Options
	Portal   formportal.Options
	Workflow workflow.Options
	Provider provider.Options
	bucket   bucket.Options
	webhooks outbox.WebhookOptions
	mail     outbox.MailOptions
	Store    persistence.Options
	Cluster  cluster.Options
	Backup   BackupOptions
	// UsesBucket says that the settings of the object store are for a backup or an export, so that no bucket of the repository is needed.
	UsesBucket bool
	TLS        certificate.Options // Cert empty: no TLS

	readConsistency string // of a cluster: there is one
	endpoints       endpointMap
	exports         []exportEntry
	mailTLS         string // starttls or implicit

	Settings []setting         // the table, with c's fields as targets
	Flags    *pflag.FlagSet    // one flag for each setting
	sources  map[string]string // by name: where the value comes from
}

type setting struct {
	// Name is that of the flag. The key in troupe.yaml is the same in camel case, the environment variable in capitals:
	// base-path is basePath and TROUPE_BASE_PATH.
	Name     string
	Value    pflag.Value // Value reads and shows the value, in its unit, and holds it in a field of config
	standard string      // the default as a person would write it
	Help     string      // one line for --help and `troupe config`
}

// A new one is one row here, and a field of the Options that it is for. The default stands in the row, or else in that
// Options.
func (c *Config) table() []setting {
	g, w, s := &c.Gateway, &c.Workflow, &c.Store
	o, b := &c.Provider, &c.bucket
	return append([]setting{
		{"home", cli.Text(&c.Home), "./troupe-home", "folder with the text files and the store"},
		{"listen", cli.Checked(cli.Text(&g.Addr), isAddress), "", "address of the service, host:port"},
		{"admin", cli.Checked(cli.Text(&c.Admin), isAddressOrEmpty), "127.0.0.1:8081", "address of metrics, host:port, with Go's profiles if you set it; empty: off"},
		{"base-path", cli.Checked(cli.Text(&g.BasePath), gateway.CheckBasePath), "", "path in front of every route, such as /platform"},
		{"session-cookie", cli.Checked(cli.Text(&g.SessionCookie), gateway.CheckCookieName), "", "name of the session cookie"},
		{"trusted-proxies", prefixes(&g.TrustedProxies), "", "addresses of the proxies in front, such as 10.0.0.5,192.168.0.0/16: their X-Forwarded-For and -Proto count"},
		{"archive-after", cli.Duration(&c.Portal.ArchiveAfter), "", "how long a completed form stays among the submitted ones; 0: not at all"},
		{"session-idle", cli.Checked(cli.Duration(&c.Identity.SessionIdle), IsSessionTime), "", "idle time after which a session ends, at least 1s"},
		{"session-max", cli.Checked(cli.Duration(&c.Identity.SessionMax), IsSessionTime), "", "maximum lifetime of a session, at least 1s"},

		{"oidc.issuer", cli.Text(&o.Issuer), "", "identity provider to sign in with (OpenID Connect), such as https://login.example.com; empty: none"},
		{"oidc.name", cli.Text(&o.Name), "", "name of the provider for users; empty: the issuer's host"},
		{"oidc.client-id", cli.Text(&o.ClientID), "", "client id of this service at the provider"},
		{"oidc.client-secret", secret(&o.ClientSecret), "", "secret of this service at the provider; better in a file, named by TROUPE_OIDC_CLIENT_SECRET_FILE"},
		{"oidc.redirect-url", cli.Text(&o.RedirectURL), "", "address of /login/oidc/callback, as registered at the provider; empty: from the header Host"},
		{"oidc.scopes", words(&o.Scopes), "", "scopes to request besides openid, separated by spaces"},
		{"oidc.login-claim", cli.Text(&o.LoginClaim), "", "claim that holds the login name of identity.yaml"},
		{"oidc.login-domain", cli.Text(&o.LoginDomain), "", "domain of a claim such as name@domain; empty: the claim is the login name"},
		{"oidc.roles-claim", cli.Text(&o.RolesClaim), "", "claim with a text or list, such as groups or realm_access.roles; empty: no roles"},
		{"oidc.roles", roles(&o.Roles), "", "roles that the values of that claim add to a session, such as {staff: employee, heads: [manager, employee]}"},

		{"repository.bucket", cli.Text(&b.Bucket), "", "the files are in this bucket of an S3-compatible object store; empty: in the folder repository of the home"},
		{"repository.endpoint", cli.Text(&b.Endpoint), "https://s3.amazonaws.com", "address of the object store"},
		{"repository.region", cli.Text(&b.Region), "", "region of the bucket; empty: the store is asked"},
		{"repository.prefix", cli.Text(&b.Prefix), "", "use only keys below this one, such as templates/"},
		{"repository.access-key", cli.Text(&b.AccessKey), "", "access key that signs requests; empty: unsigned"},
		{"repository.secret-key", secret(&b.SecretKey), "", "secret of the access key; better in a file, named by TROUPE_REPOSITORY_SECRET_KEY_FILE"},
		{"repository.machine-role", cli.Boolean(&b.MachineRole), "", "sign with the AWS role of this machine or container, without keys"},
		{"repository.poll", cli.Duration(&b.Poll), "", "pause between two checks for changes in the bucket"},

		{"webhooks.allow", prefixes(&c.webhooks.Allow), "", "private networks that webhooks may reach, such as 10.0.0.0/8,127.0.0.0/8; empty: none"},
		{"webhooks.endpoints", endpoints(&c.endpoints), "", "url, headers and secret of webhooks, by workflow and name, such as {order: {ship: {url: https://example.com, secretFile: ship.key}}}"},
		{"mail.host", cli.Text(&c.mail.Host), "", "mail server; empty: mails become dead letters"},
		{"mail.port", cli.Checked(cli.Count(&c.mail.Port), isPort), "", "its port; 0: 587, or 465 with mail.tls implicit"},
		{"mail.user", cli.Text(&c.mail.User), "", "user at the mail server; empty: no sign-in"},
		{"mail.password", secret(&c.mail.Password), "", "password of that user; better in a file, named by TROUPE_MAIL_PASSWORD_FILE"},
		{"mail.from", cli.Text(&c.mail.From), "", "sender, such as Troupe <troupe@example.com>"},
		{"mail.tls", cli.Checked(cli.Text(&c.mailTLS), among("must be starttls or implicit", "starttls", "implicit")), "starttls", "starttls, required unless the host is this machine, or implicit"},

		{"log-level", cli.Checked(cli.Text(&c.LogLevel), isLogLevel), "info", "debug, info, warn or error"},
		{"log-format", cli.Checked(cli.Text(&c.logFormat), among("must be json, text or auto", "auto", "json", "text")), "auto", "json, text, or auto: text on a terminal"},

		{"idle-after", cli.Duration(&w.IdleAfter), "", "idle time after which an instance is passivated"},
		{"awake-bytes-max", cli.Size(&w.AwakeBytesMax), "", "memory for active instances; above it they are passivated earlier"},
		{"in-flight-max", cli.Count(&w.InFlightMax), "", "concurrent requests to instances; more are answered with 503"},
		{"instance-in-flight-max", cli.Count(&w.InstanceInFlightMax), "", "concurrent requests to one instance; more are answered with 429"},
		{"tree-instances-max", cli.Count(&w.TreeInstancesMax), "", "running instances in one tree of invocations; the parent of one more gets error.invoke.<state>"},
		{"connections-max", cli.Count(&g.ConnectionsMax), "", "open connections; one more replaces an idle one"},
		{"requests-max", cli.Count(&g.InFlightMax), "", "concurrent requests, fewer under load, at most half of them for one user; more are answered with 503"},
		{"queries-max", cli.Count(&w.QueriesMax), "", "queries that run at a time"},
		{"watchers-max", cli.Count(&g.WatchersMax), "", "open event streams; more are answered with 503"},
		{"watchers-per-user-max", cli.Count(&g.WatchersPerUserMax), "", "open event streams of one user, at most half of all; more are answered with 503"},
		{"query-time-max", cli.Duration(&w.QueryTimeMax), "", "maximum duration of a query"},
		{"quota.events-per-second", cli.Rate(&w.Quotas.EventsPerSecond), "", "events per second and user, without forms; more are answered with 429; 0: no quota"},
		{"quota.creates-per-second", cli.Rate(&w.Quotas.CreatesPerSecond), "", "instances created per second and user, without forms; more are answered with 429; 0: no quota"},
		{"quota.history-entries", cli.Count(&w.Quotas.HistoryEntries), "", "history entries per instance, without forms; one more event is answered with 429; 0: no quota"},
		{"drain-delay", cli.Duration(&g.DrainDelay), "", "how long new requests get 503 after SIGTERM before the port closes; 0: not at all"},
		{"drain-max", cli.Duration(&g.DrainMax), "", "how long accepted requests may take after SIGTERM"},

		{"shards", cli.Count(&s.Shards), "", "shards of a new store; 0: 16, in a new cluster 64; fixed once the store exists"},
		{"cache-bytes", cli.Size(&s.CacheBytes), "", "memory for cached blocks of the store"},
		{"mem-table-bytes", cli.Size(&s.MemTableBytes), "", "memory for writes before they become a table"},
		{"free-bytes-min", cli.Size(&s.FreeBytesMin), "", "free disk space below which writes are refused"},
		{"commit-wait-max", cli.Checked(cli.Duration(&s.CommitWaitMax), IsSessionTime), "", "how long a commit may take until its outcome counts as unknown, at least 1s"},
		{"changes-kept-for", cli.Duration(&w.ChangesKeptFor), "", "how long the change feed keeps an entry"},
		{"changes-max", cli.Count(&w.ChangesMax), "", "entries that the change feed keeps per shard"},
		{"exports", exports(&c.exports), "", "where the history of instances is exported to, such as [{name: lake, to: /srv/lake, workflows: [order]}]"},

		{"cluster.listen", cli.Checked(cli.Text(&c.Cluster.Listen), isAddressOrEmpty), "", "address of the cluster port, host:port; written by cluster init and join"},
		{"cluster.advertise", cli.Checked(cli.Text(&c.Cluster.Advertise), isAddressOrEmpty), "", "address at which other nodes reach it; empty: cluster.listen"},
		{"cluster.name", cli.Checked(cli.Text(&c.Cluster.Name), isNodeName), "", "name of the node for users, such as its machine; empty: its address"},
		{"cluster.replicas", cli.Checked(cli.Count(&c.Cluster.Replicas), among("must be 1, 3 or 5: an even number survives no more losses than the next lower one", "1", "3", "5")), "", "nodes with a vote in each shard, if there are that many: 1, 3 or 5"},
		{"cluster.read-consistency", cli.Checked(cli.Text(&c.readConsistency), among("must be leader", "leader")), "leader", "consistency of reads: leader shows all that the leader has acknowledged; there is no weaker one"},
	}, slices.Concat(c.backupTable(), c.outward())...)
}

// outward are the settings about those who call from elsewhere.
func (c *Config) outward() []setting {
	return []setting{
		{"tls.cert", cli.Text(&c.TLS.Cert), "", "file with the certificate of the service and its chain, PEM; empty: no TLS"},
		{"tls.key", cli.Text(&c.TLS.Key), "", "file with the key of the certificate, PEM"},
		{"tls.client-ca", cli.Text(&c.TLS.ClientCA), "", "file with the authorities whose certificates authenticate programs, PEM; empty: none"},
		{"cors.origins", origins((*[]string)(&c.Gateway.Origins)), "", "other sites whose pages may call the service with a token, such as https://app.example.com,https://example.org; *: all; empty: none"},
	}
}

// New returns the settings with their defaults, as flags that a command can take.
func New() *Config {
	c := &Config{Flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), sources: map[string]string{}}
	c.Flags.SortFlags = false
	c.Settings = c.table()
	for i, s := range c.Settings {
		// NB: only the settings' own fields are filled in.
		if err := s.Value.Set(cmp.Or(s.standard, standards()[i])); err != nil {
			panic(fmt.Sprintf("the default of %s: %v", s.Name, err))
		}
		f := c.Flags.VarPF(s.Value, s.Name, "", s.Help)
		if s.Value.Type() == "bool" {
			f.NoOptDefVal = "true" // what the flag means without a value
		}
	}
	return c
}

// standards are the defaults of packages as texts. Every command line makes many Configs.
var standards = sync.OnceValue(func() (texts []string) {
	for _, s := range packageDefaults() {
		texts = append(texts, s.Value.String())
	}
	return texts
})

func packageDefaults() []setting {
	c := &Config{}
	c.Gateway.EnsureDefaults()
	c.Identity.EnsureDefaults()
	c.Portal.EnsureDefaults()
	c.Workflow.EnsureDefaults()
	c.Provider.EnsureDefaults()
	c.bucket.EnsureDefaults()
	c.Backup.EnsureDefaults()
	c.Cluster.EnsureDefaults()
	c.Store = c.Store.EnsureDefaults()
	return c.table()
}

func (c *Config) validate() error {
	var faults []error
	for _, first := range []string{"oidc.issuer", "repository.bucket", "mail.host", "backup.to", "tls.cert"} { // without it the rest of its group means nothing
		if c.Flags.Lookup(first).Value.String() != "" {
			continue
		}
		group, _, _ := strings.Cut(first, ".")
		if group == "repository" && (c.UsesBucket || strings.HasPrefix(c.Backup.To, BucketScheme) || c.exportsToBucket()) {
			continue
		}
		for _, s := range c.Settings {
			if strings.HasPrefix(s.Name, group+".") && s.Name != first && c.IsChosen(s.Name) {
				faults = append(faults, fmt.Errorf("%s is set, but %s is not", KeyName(s.Name), first))
			}
		}
	}
	for _, e := range c.exports {
		if strings.Contains(e.To, "://") {
			continue
		}
		if err := c.checkFolder(e.To); err != nil {
			faults = append(faults, fmt.Errorf("exports, %s: %w", e.Name, err))
		}
	}
	if to := c.Backup.To; to != "" && !strings.HasPrefix(to, BucketScheme) {
		if err := c.checkFolder(to); err != nil {
			faults = append(faults, fmt.Errorf("backup.to: %w", err))
		}
	}
	return errors.Join(faults...)
}

// IsSessionTime leaves sessions, commits and the like some time. NB: packages take a zero for their own default.
func IsSessionTime(s string) error {
	d, err := cli.ParseDuration(s)
	if err == nil && d < time.Second {
		return errors.New("must be at least 1s")
	}
	return err
}

func isAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return errors.New("must be host:port, such as 127.0.0.1:8080 or :8080, with a port of at most 65535")
	}
	return nil
}

func isPort(s string) error {
	if n, err := strconv.ParseInt(s, 0, 64); err == nil && n > math.MaxUint16 {
		return errors.New("must be at most 65535")
	}
	return nil // cli.Count refuses what is no number
}

func isAddressOrEmpty(s string) error {
	if s == "" {
		return nil
	}
	return isAddress(s)
}

func isNodeName(s string) error {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("must be at most 64 visible characters")
	}
	return nil
}

func among(refusal string, words ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(words, s) {
			return errors.New(refusal)
		}
		return nil
	}
}

func isLogLevel(s string) error {
	if _, err := zerolog.ParseLevel(s); err != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

func envName(name string) string {
	return "TROUPE_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// KeyName is the key of a setting in troupe.yaml: basePath, or oidc.clientId for clientId below oidc.
func KeyName(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		if words[i+1] = strings.ToUpper(w[:1]) + w[1:]; w == "ca" {
			words[i+1] = "CA"
		}
	}
	return strings.Join(words, "")
}
