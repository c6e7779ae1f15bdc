package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
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
	"troupe/gateway"
	"troupe/gateway/provider"
	"troupe/persistence"
)

// config is every setting of the program. Most of them are fields of the Options
// of the package that they are for. It is read once, by load; nothing else looks at
// flags, the environment or troupe.yaml.
type config struct {
	home, admin         string
	logLevel, logFormat string

	gateway  gateway.Options
	identity identity.Options
	portal   formportal.Options
	workflow workflow.Options
	provider provider.Options
	bucket   bucket.Options
	webhooks outbox.WebhookOptions
	mail     outbox.MailOptions
	store    persistence.Options
	cluster  cluster.Options

	readConsistency string // of a cluster: there is one
	endpoints       endpointMap
	mailTLS         string // starttls or implicit
	joinedShards    int    // those of the cluster that `cluster join` has joined

	settings []setting         // the table, with c's fields as targets
	flags    *pflag.FlagSet    // one flag for each setting
	sources  map[string]string // by name: where the value comes from
}

// setting is one row of the table of settings.
type setting struct {
	// name is that of the flag. The key in troupe.yaml is the same in camel case, the
	// environment variable in capitals: base-path is basePath and TROUPE_BASE_PATH.
	// What stands before a dot is a group: oidc.client-id is clientId below oidc, and
	// TROUPE_OIDC_CLIENT_ID.
	name string
	// value reads and shows the value, in its unit, and holds it in a field of config.
	value pflag.Value
	// standard is the default as a person would write it. Empty: the default of the
	// package whose Options have the field.
	standard string
	// help is one line for --help and `troupe config`.
	help string
}

// table has all settings. A new one is one row here, and a field of the Options
// that it is for. The default stands in the row, or else in that Options.
func (c *config) table() []setting {
	g, w, s := &c.gateway, &c.workflow, &c.store
	o, b := &c.provider, &c.bucket
	return []setting{
		{"home", text(&c.home), "./troupe-home", "folder with the text files and the store"},
		{"listen", checked(text(&g.Addr), isAddress), "", "address of the service, host:port"},
		{"admin", checked(text(&c.admin), isAddressOrEmpty), "", "address of metrics and profiles, host:port; empty: off"},
		{"base-path", checked(text(&g.BasePath), gateway.CheckBasePath), "", "path in front of every route, such as /platform"},
		{"session-cookie", checked(text(&g.SessionCookie), gateway.CheckCookieName), "", "name of the session cookie"},
		{"trusted-proxies", prefixes(&g.TrustedProxies), "", "addresses of the proxies in front, such as 10.0.0.5,192.168.0.0/16: their X-Forwarded-For and -Proto count"},
		{"archive-after", duration(&c.portal.ArchiveAfter), "", "time that a completed form stays among the submitted ones; 0: none"},
		{"session-idle", checked(duration(&c.identity.SessionIdle), isSessionTime), "", "time without use after which a session ends, at least 1s"},
		{"session-max", checked(duration(&c.identity.SessionMax), isSessionTime), "", "time after which a session ends in any case, at least 1s"},

		{"oidc.issuer", text(&o.Issuer), "", "identity provider to sign in with (OpenID Connect), such as https://login.example.com; empty: none"},
		{"oidc.name", text(&o.Name), "", "what people know the provider by; empty: the issuer's host"},
		{"oidc.client-id", text(&o.ClientID), "", "what the provider knows this service by"},
		{"oidc.client-secret", secret(&o.ClientSecret), "", "secret of this service at the provider; better in a file, named by TROUPE_OIDC_CLIENT_SECRET_FILE"},
		{"oidc.redirect-url", text(&o.RedirectURL), "", "address of /login/oidc/callback as the provider has it; empty: by the header Host"},
		{"oidc.scopes", words(&o.Scopes), "", "scopes to ask for beside openid, separated by blanks"},
		{"oidc.login-claim", text(&o.LoginClaim), "", "claim that holds the login name of identity.yaml"},
		{"oidc.login-domain", text(&o.LoginDomain), "", "the claim is like name@domain and must be of this domain; empty: it is the name"},
		{"oidc.roles-claim", text(&o.RolesClaim), "", "claim with a text or a list, such as groups or realm_access.roles; empty: no roles"},
		{"oidc.roles", roles(&o.Roles), "", "roles that its values add to a session, such as {staff: employee, heads: [manager, employee]}"},

		{"repository.bucket", text(&b.Bucket), "", "the files are in this bucket of an S3-compatible object store; empty: in the folder repository of the home"},
		{"repository.endpoint", text(&b.Endpoint), "https://s3.amazonaws.com", "address of the object store"},
		{"repository.region", text(&b.Region), "", "where the bucket is; empty: the store is asked"},
		{"repository.prefix", text(&b.Prefix), "", "only what is below this key, such as templates/"},
		{"repository.access-key", text(&b.AccessKey), "", "access key that signs requests; empty: they are not signed"},
		{"repository.secret-key", secret(&b.SecretKey), "", "secret of the access key; better in a file, named by TROUPE_REPOSITORY_SECRET_KEY_FILE"},
		{"repository.machine-role", boolean(&b.MachineRole), "", "sign with the role that AWS gives to this machine or container, without keys"},
		{"repository.poll", duration(&b.Poll), "", "pause between two checks for changes in the bucket"},

		{"webhooks.allow", prefixes(&c.webhooks.Allow), "", "private networks that webhooks may reach, such as 10.0.0.0/8,127.0.0.0/8; empty: none"},
		{"webhooks.endpoints", endpoints(&c.endpoints), "", "url, headers and secret of webhooks, by workflow and name, such as {order: {ship: {url: https://example.com, secretFile: ship.key}}}"},
		{"mail.host", text(&c.mail.Host), "", "server that takes mails; empty: mails become dead letters"},
		{"mail.port", count(&c.mail.Port), "", "its port; 0: 587, or 465 with mail.tls implicit"},
		{"mail.user", text(&c.mail.User), "", "who signs in there; empty: nobody does"},
		{"mail.password", secret(&c.mail.Password), "", "password of that user; better in a file, named by TROUPE_MAIL_PASSWORD_FILE"},
		{"mail.from", text(&c.mail.From), "", "who sends, such as Troupe <troupe@example.com>"},
		{"mail.tls", checked(text(&c.mailTLS), isMailTLS), "starttls", "starttls, which is demanded unless the host is this machine, or implicit"},

		{"log-level", checked(text(&c.logLevel), isLogLevel), "info", "debug, info, warn or error"},
		{"log-format", checked(text(&c.logFormat), isLogFormat), "auto", "json, text, or auto: text on a terminal"},

		{"idle-after", duration(&w.IdleAfter), "", "time without a request after which an instance goes to sleep"},
		{"awake-bytes-max", size(&w.AwakeBytesMax), "", "memory for awake instances; above it they go to sleep earlier"},
		{"in-flight-max", count(&w.InFlightMax), "", "requests at instances at a time; more are answered with 503"},
		{"instance-in-flight-max", count(&w.InstanceInFlightMax), "", "requests at one instance at a time; more are answered with 429"},
		{"tree-instances-max", count(&w.TreeInstancesMax), "", "instances that run of one that nobody has invoked and all below it; the parent of a child beyond gets `error.invoke.<state>`"},
		{"connections-max", count(&g.ConnectionsMax), "", "open connections; a new one beyond takes the place of an idle one"},
		{"requests-max", count(&g.InFlightMax), "", "requests worked on at a time, fewer while processors are short; at most half of them for one user; more are answered with 503"},
		{"queries-max", count(&w.QueriesMax), "", "queries that work at a time"},
		{"watchers-max", count(&g.WatchersMax), "", "streams of events that are open at a time; more are answered with 503"},
		{"watchers-per-user-max", count(&g.WatchersPerUserMax), "", "streams of events of one user at a time, at most half of all; more are answered with 503"},
		{"query-time-max", duration(&w.QueryTimeMax), "", "how long a query may run"},
		{"quota.events-per-second", rate(&w.Quotas.EventsPerSecond), "", "events that one user may send a second, forms aside; more are answered with 429; 0: no quota"},
		{"quota.creates-per-second", rate(&w.Quotas.CreatesPerSecond), "", "instances that one user may create a second, forms aside; more are answered with 429; 0: no quota"},
		{"quota.history-entries", count(&w.Quotas.HistoryEntries), "", "history entries of one instance, forms aside; an event beyond is answered with 429; 0: no quota"},
		{"drain-delay", duration(&g.DrainDelay), "", "after SIGTERM, how long new requests get 503 before the port closes; 0: not at all"},
		{"drain-max", duration(&g.DrainMax), "", "after SIGTERM, how long accepted requests may take"},

		{"shards", count(&s.Shards), "", "key ranges of a new store; 0: 16; fixed once the store exists"},
		{"cache-bytes", size(&s.CacheBytes), "", "memory for stored blocks"},
		{"mem-table-bytes", size(&s.MemTableBytes), "", "writes gathered in memory before they become a table"},
		{"free-bytes-min", size(&s.FreeBytesMin), "", "free disk space below which writes are refused"},
		{"commit-wait-max", duration(&s.CommitWaitMax), "", "how long a commit may take before its outcome counts as unknown"},
		{"changes-kept-for", duration(&w.ChangesKeptFor), "", "how long the feed of changes keeps an entry"},
		{"changes-max", count(&w.ChangesMax), "", "entries that the feed of changes keeps in each shard"},

		{"cluster.listen", checked(text(&c.cluster.Listen), isAddressOrEmpty), "", "address of the cluster port of a node, host:port; cluster init and join write it here"},
		{"cluster.advertise", checked(text(&c.cluster.Advertise), isAddressOrEmpty), "", "address at which other nodes reach it; empty: cluster.listen"},
		{"cluster.name", checked(text(&c.cluster.Name), isNodeName), "", "what people know the node by, such as its machine; empty: its address"},
		{"cluster.replicas", checked(count(&c.cluster.Replicas), isReplicas), "", "nodes with a vote in each shard, once there are so many: 1, 3 or 5"},
		{"cluster.read-consistency", checked(text(&c.readConsistency), isReadConsistency), "leader", "what a read shows: all that its leader has acknowledged; there is no weaker one"},
	}
}

// newConfig returns the settings with their defaults, as flags that a command can
// take.
func newConfig() *config {
	c := &config{flags: pflag.NewFlagSet("settings", pflag.ContinueOnError), sources: map[string]string{}}
	c.flags.SortFlags = false
	c.settings = c.table()
	standards := packageDefaults()
	for i, s := range c.settings {
		// NB: only the settings' own fields are filled in. What a package derives from
		// them, such as a limit that is a multiple of another, it derives itself.
		if err := s.value.Set(cmp.Or(s.standard, standards[i].value.String())); err != nil {
			panic(fmt.Sprintf("the default of %s: %v", s.name, err))
		}
		f := c.flags.VarPF(s.value, s.name, "", s.help)
		if s.value.Type() == "bool" {
			f.NoOptDefVal = "true" // what the flag means without a value
		}
	}
	return c
}

// packageDefaults is the table with the defaults of the packages.
func packageDefaults() []setting {
	c := &config{}
	c.gateway.EnsureDefaults()
	c.identity.EnsureDefaults()
	c.portal.EnsureDefaults()
	c.workflow.EnsureDefaults()
	c.provider.EnsureDefaults()
	c.bucket.EnsureDefaults()
	c.cluster.EnsureDefaults()
	c.store = c.store.EnsureDefaults()
	return c.table()
}

// validate finds what no single setting shows.
func (c *config) validate() error {
	var faults []error
	for _, first := range []string{"oidc.issuer", "repository.bucket", "mail.host"} { // without it the rest of its group means nothing
		if c.flags.Lookup(first).Value.String() != "" {
			continue
		}
		group, _, _ := strings.Cut(first, ".")
		for _, s := range c.settings {
			if strings.HasPrefix(s.name, group+".") && s.name != first && c.sources[s.name] != "default" {
				faults = append(faults, fmt.Errorf("%s is set, but %s is not", keyName(s.name), first))
			}
		}
	}
	return errors.Join(faults...)
}

// isSessionTime leaves sessions some time. NB: package identity takes a zero for its
// own default.
func isSessionTime(s string) error {
	d, err := parseDuration(s)
	if err == nil && d < time.Second {
		return errors.New("must be at least 1s")
	}
	return err
}

// isAddress wants what can be listened at.
func isAddress(s string) error {
	if _, _, err := net.SplitHostPort(s); err != nil {
		return errors.New("must be host:port, such as 127.0.0.1:8080 or :8080")
	}
	return nil
}

func isAddressOrEmpty(s string) error {
	if s == "" {
		return nil
	}
	return isAddress(s)
}

// isNodeName takes what fits into a list of nodes.
func isNodeName(s string) error {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return errors.New("must be at most 64 characters that can be seen")
	}
	return nil
}

func isReplicas(s string) error {
	if s != "1" && s != "3" && s != "5" {
		return errors.New("must be 1, 3 or 5: an even number survives no more losses than one less")
	}
	return nil
}

func isMailTLS(s string) error {
	if s != "starttls" && s != "implicit" {
		return errors.New("must be starttls or implicit")
	}
	return nil
}

func isReadConsistency(s string) error {
	if s != "leader" {
		return errors.New("must be leader")
	}
	return nil
}

func isLogLevel(s string) error {
	if _, err := zerolog.ParseLevel(s); err != nil {
		return errors.New("must be debug, info, warn or error")
	}
	return nil
}

func isLogFormat(s string) error {
	if s != "auto" && s != "json" && s != "text" {
		return errors.New("must be json, text or auto")
	}
	return nil
}

// envName is the environment variable of a setting: TROUPE_BASE_PATH.
func envName(name string) string {
	return "TROUPE_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

// keyName is the key of a setting in troupe.yaml: basePath, or oidc.clientId for
// clientId below oidc.
func keyName(name string) string {
	words := strings.Split(name, "-")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}
