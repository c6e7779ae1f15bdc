package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/identity"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
	"troupe/cmd/internal/homedir"
)

// Loaded is a config with the settings of a home, and with flags: names and values.
func Loaded(t *testing.T, home string, flags ...string) (*Config, error) {
	t.Helper()
	c := New()
	for pair := range slices.Chunk(append(flags, "home", home), 2) {
		require.NoError(t, c.Flags.Set(pair[0], pair[1]))
	}
	return c, c.Load()
}

// samples are values that a setting of a type can have and that no default is, where it has others.
func samples(f *pflag.Flag) [3]string {
	switch {
	case f.Name == "log-level":
		return [3]string{"debug", "warn", "error"}
	case f.Name == "log-format":
		return [3]string{"json", "text", "json"}
	case f.Name == "cluster.replicas":
		return [3]string{"1", "5", "1"}
	case f.Name == "cluster.read-consistency":
		return [3]string{"leader", "leader", "leader"} // it has no other
	case f.Name == "listen", f.Name == "admin", f.Name == "cluster.listen", f.Name == "cluster.advertise":
		return [3]string{"one:1", "two:2", "three:3"}
	case f.Name == "mail.tls":
		return [3]string{"implicit", "starttls", "implicit"}
	case f.Name == "cors.origins":
		return [3]string{"https://one", "https://two,http://three:81", "*"}
	case f.Name == "base-path":
		return [3]string{"/one", "/two", "/three"}
	}
	return map[string][3]string{
		"secret": {"one", "two", "three"}, "endpoints": {`{"a":{"b":{"url":"http://one"}}}`, `{"a":{"b":{"url":"http://two"}},"c":{"d":{"url":"http://e"}}}`, `{"a":{"b":{"url":"http://three"}}}`},
		"exports": {`[{"name":"a","to":"/one"}]`, `[{"name":"b","to":"s3://two/x","workflows":["w"],"format":"parquet"}]`, `[{"name":"c","to":"https://three/"}]`},
		"roles":   {`{"a":["x"]}`, `{"b":["x","y"],"c=d, e":["z"]}`, `{"f":["x"]}`},
		"string":  {"one", "two", "three"}, "int": {"11", "12", "13"}, "int64": {"11", "12", "13"}, "float64": {"1.5", "12", "0.25"}, "bool": {"true", "true", "true"},
		"addresses": {"10.0.0.1/32", "10.0.0.0/8,fd00::/8", "192.168.7.0/24"}, "time": {"11s", "12s", "13s"}, "bytes": {"11KiB", "12KiB", "13KiB"},
	}[f.Value.Type()]
}

// TestPrecedence holds cmd/troupe/HOME.md, "Settings" for every setting that there
// is: flag over environment over file over default.
func TestPrecedence(t *testing.T) {
	New().Flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "home" {
			return // it says where the file is
		}
		t.Run(f.Name, func(t *testing.T) {
			inFile, inEnvironment, inFlag := samples(f)[0], samples(f)[1], samples(f)[2]
			empty, home := clitest.HomeWith(t, ""), clitest.HomeWith(t, inSettings(f.Name, inFile))
			for _, first := range []string{"oidc.issuer", "repository.bucket", "mail.host", "backup.to", "tls.cert"} { // the rest of its group needs it
				if group, _, _ := strings.Cut(first, "."); strings.HasPrefix(f.Name, group+".") && f.Name != first {
					t.Setenv(envName(first), map[bool]string{true: "s3://backups", false: "https://login.example.com"}[group == "backup"])
				}
			}
			wants := func(home, value, source string, flags ...string) {
				t.Helper()
				c, err := Loaded(t, home, flags...)
				require.NoError(t, err, "load")
				if got := textOf(c.Flags.Lookup(f.Name)); got != value || c.sources[f.Name] != source {
					t.Errorf("got %q from %s, want %q from %s", got, c.sources[f.Name], value, source)
				}
			}
			wants(empty, f.DefValue, "default")
			wants(home, inFile, homedir.SettingsFile)
			t.Setenv(envName(f.Name), inEnvironment)
			wants(home, inEnvironment, envName(f.Name))
			wants(home, inFlag, "flag", f.Name, inFlag)
		})
	})
}

func inSettings(name, value string) string {
	if group, key, found := strings.Cut(KeyName(name), "."); found {
		return group + ":\n  " + key + ": " + value + "\n"
	}
	return KeyName(name) + ": " + value + "\n"
}

func textOf(f *pflag.Flag) string {
	if f.Value.Type() == secretType {
		return *f.Value.(*cli.Value[string]).To
	}
	return f.Value.String()
}

// TestSecretSettings holds that a secret can stand in a file, and is never shown.
func TestSecretSettings(t *testing.T) {
	const secret = "an old oak"
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\r\n"), 0o600))
	home := clitest.HomeWith(t, "oidc:\n  issuer: https://login.example.com\n  clientSecret: in the file\n")
	load := func() (*Config, error) { return Loaded(t, home) }
	const name, variable = "oidc.client-secret", "TROUPE_OIDC_CLIENT_SECRET"
	if c, err := load(); err != nil || c.Provider.ClientSecret != "in the file" || c.sources[name] != homedir.SettingsFile {
		t.Errorf("troupe.yaml: got %q, %v", c.Provider.ClientSecret, err)
	}
	t.Setenv(variable+"_FILE", file)
	c, err := load()
	if err != nil || c.Provider.ClientSecret != secret || c.sources[name] != variable+"_FILE" {
		t.Errorf("a file: got %q from %s, %v", c.Provider.ClientSecret, c.sources[name], err)
	}
	code, stdout, stderr := clitest.Invoke("config", "--home", home)
	if code != cli.ExitDone || strings.Contains(stdout+stderr, "oak") || !strings.Contains(stdout, "(not shown)") || !strings.Contains(stdout, variable+"_FILE") {
		t.Errorf("troupe config: got %d, %s%s", code, stdout, stderr)
	}
	t.Setenv(variable, secret)
	_, err = load()
	assert.True(t, err != nil && strings.Contains(err.Error(), "both set") && !strings.Contains(err.Error(), "oak"), "both: got %v", err)
	t.Setenv(variable+"_FILE", file+".gone")
	require.NoError(t, os.Unsetenv(variable))
	_, err = load()
	assert.True(t, err != nil && strings.Contains(err.Error(), variable+"_FILE"), "a file that is not there: got %v", err)
}

// TestRolesSetting holds the spellings of the map from values to roles.
func TestRolesSetting(t *testing.T) {
	const want = `{"cn=heads, ou=x":["manager","employee"],"staff":["employee"]}`
	for _, settings := range []string{
		"oidc:\n  issuer: https://x.example\n  roles:\n    staff: employee\n    cn=heads, ou=x: [manager, employee]\n",
		"oidc: {issuer: 'https://x.example', roles: {staff: [employee], 'cn=heads, ou=x': [manager, employee]}}\n",
		"oidc:\n  issuer: https://x.example\n  roles: '" + want + "'\n",
	} {
		c, err := Loaded(t, clitest.HomeWith(t, settings))
		if err != nil || c.Flags.Lookup("oidc.roles").Value.String() != want {
			t.Errorf("%s: got %v, %v", settings, c.Flags.Lookup("oidc.roles").Value, err)
		}
	}
	for _, text := range []string{"x", "[x]", "{x: {y: z}}", "{x: 1}", "{x: [[y]]}", "{x: 'a b'}", "{x: ''}", "{", "{x: y, x: z}"} {
		got, err := parseRoles(text)
		assert.Error(t, err, "%s: got %v, want an error", text, got)
	}
}

// TestDefaultsStandOnce: the Options of a package give its settings' defaults, and
// nothing else of them is filled in before the package does it.
func TestDefaultsStandOnce(t *testing.T) {
	var identities identity.Options
	identities.EnsureDefaults()
	c := New()
	assert.True(t, c.Identity.SessionMax == identities.SessionMax && c.Gateway.Addr != "" && c.Store.CacheBytes != 0,
		"got %v, %q and %d, want the defaults of the packages", c.Identity.SessionMax, c.Gateway.Addr, c.Store.CacheBytes)
	assert.True(t, c.Workflow.HistoryResidentBytes == 0 && c.Identity.Clock == nil && c.Store.Fatal == nil)
	packages := packageDefaults()
	for i, s := range c.Settings {
		other := packages[i].Value.String()
		assert.False(t, s.standard != "" && other != "", "%s: the default %s stands in the table, and %s in the package", s.Name, s.standard, other)
	}
}

func TestWrongEnvironment(t *testing.T) {
	wrong := map[string]string{
		"TROUPE_SHARDS=many": "TROUPE_SHARDS: ", "TROUPE_SESSION_MAX=7y": "TROUPE_SESSION_MAX: must be a time",
		"TROUPE_SESSION_IDLE=999ms": "TROUPE_SESSION_IDLE: must be at least 1s",
	}
	for variable := range wrong {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	_, err := Loaded(t, clitest.HomeWith(t, ""))
	for _, want := range wrong {
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "got %v, want all faults, %q among them", err, want)
	}
}

// TestExampleSettings holds that every line that the example shows as a comment
// is a setting that works.
func TestExampleSettings(t *testing.T) {
	text, err := fs.ReadFile(clitest.Example(), homedir.SettingsFile)
	require.NoError(t, err)
	var active strings.Builder
	count := 0
	for line := range strings.Lines(string(text)) {
		if key, _, found := strings.Cut(strings.TrimPrefix(line, "# "), ": "); found && !strings.Contains(key, " ") {
			active.WriteString(strings.TrimPrefix(line, "# "))
			count++
		}
	}
	require.NotZero(t, count, "the example shows no setting")
	_, err = Loaded(t, clitest.HomeWith(t, active.String()))
	assert.NoError(t, err, "%d settings, %s", count, active.String())
}
