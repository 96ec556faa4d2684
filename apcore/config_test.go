package apcore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

const smallConfig = "version: 1.0.0\nproject: {name: shop}\n"

// §11.6: the environment wins over the file, the file over the defaults.
func TestConfig(t *testing.T) {
	defaults := apcore.Config{
		Version: "1.0.0", ProjectName: "shop", DefaultTimeout: 30 * time.Second, GlobalTimeout: time.Minute,
		MaxCallDepth: 32, MaxModuleRepeat: 3, ACLRoot: "./acl",
	}
	const full = smallConfig + `
executor: {default_timeout: 1500, global_timeout: 0, max_call_depth: 8, max_module_repeat: 2.0}
acl: {root: rules}
obs: {redaction: {sensitive_keys: [pin, "*_key"], regex_patterns: ["\\d{16}"], replacement: "#"}}
pipeline: {anything: goes}
others: [1, 2]
`
	filled := apcore.Config{
		Version: "1.0.0", ProjectName: "shop", DefaultTimeout: 1500 * time.Millisecond, GlobalTimeout: apcore.NoTimeout, MaxCallDepth: 8, MaxModuleRepeat: 2, ACLRoot: "rules",
		Redaction: apcore.RedactionConfig{SensitiveKeys: []string{"pin", "*_key"}, Patterns: []string{`\d{16}`}, Replacement: "#"},
	}
	with := func(c apcore.Config, change func(*apcore.Config)) apcore.Config { change(&c); return c }
	for name, test := range map[string]struct {
		text    string
		environ []string
		want    apcore.Config
	}{
		"defaults":  {smallConfig, nil, defaults},
		"JSON":      {`{"version":"1.0.0","project":{"name":"shop"}}`, nil, defaults},
		"null":      {smallConfig + "executor: {max_call_depth: null}\nacl:\n", nil, defaults},
		"full":      {full, []string{"PATH=/bin", "APCORE_UNHEARD=1", "executor.max_call_depth=5"}, filled},
		"exact":     {full, []string{"APCORE_EXECUTOR_DEFAULT__TIMEOUT=7"}, with(filled, func(c *apcore.Config) { c.DefaultTimeout = 7 * time.Millisecond })},
		"loose":     {full, []string{"APCORE_EXECUTOR_MAX_CALL_DEPTH=9"}, with(filled, func(c *apcore.Config) { c.MaxCallDepth = 9 })},
		"exact one": {full, []string{"APCORE_EXECUTOR_MAX__CALL__DEPTH=9", "APCORE_EXECUTOR_MAX_CALL_DEPTH=10"}, with(filled, func(c *apcore.Config) { c.MaxCallDepth = 9 })},
		"texts":     {full, []string{"APCORE_PROJECT_NAME=007", "APCORE_ACL_ROOT=a=b: c"}, with(filled, func(c *apcore.Config) { c.ProjectName, c.ACLRoot = "007", "a=b: c" })},
		"list":      {smallConfig, []string{"APCORE_OBS_REDACTION_SENSITIVE__KEYS=[]"}, with(defaults, func(c *apcore.Config) { c.Redaction.SensitiveKeys = []string{} })},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apcore.ParseConfig([]byte(test.text), test.environ)
			must(t, err)
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigFaults(t *testing.T) {
	for name, test := range map[string]struct {
		text, variable string
		key            string
	}{
		"empty":              {"", "", "version"},
		"no version":         {"project: {name: shop}\n", "", "version"},
		"no name":            {"version: 1.0.0\n", "", "project.name"},
		"empty name":         {"version: 1.0.0\nproject: {name: ''}\n", "", "project.name"},
		"no object":          {"version: 1.0.0\nproject: shop\n", "", "project.name"},
		"text for a number":  {smallConfig + "executor: {default_timeout: 5s}\n", "", "executor.default_timeout"},
		"negative":           {smallConfig + "executor: {global_timeout: -1}\n", "", "executor.global_timeout"},
		"fraction":           {smallConfig + "executor: {global_timeout: 1.5}\n", "", "executor.global_timeout"},
		"beyond all bounds":  {smallConfig + "executor: {global_timeout: 9223372036854775807}\n", "", "executor.global_timeout"},
		"depth 0":            {smallConfig + "executor: {max_call_depth: 0}\n", "", "executor.max_call_depth"},
		"depth 1001":         {smallConfig + "executor: {max_call_depth: 1001}\n", "", "executor.max_call_depth"},
		"repeat 101":         {smallConfig + "executor: {max_module_repeat: 101}\n", "", "executor.max_module_repeat"},
		"bad variable":       {smallConfig, "APCORE_EXECUTOR_MAX__CALL__DEPTH=many", "executor.max_call_depth"},
		"empty variable":     {smallConfig, "APCORE_PROJECT_NAME=", "project.name"},
		"keys that are none": {smallConfig + "obs: {redaction: {sensitive_keys: pin}}\n", "", "obs.redaction.sensitive_keys"},
		"numbers as keys":    {smallConfig + "obs: {redaction: {sensitive_keys: [1]}}\n", "", "obs.redaction.sensitive_keys"},
		"bad pattern":        {smallConfig + "obs: {redaction: {regex_patterns: ['(']}}\n", "", ""},
		"no YAML":            {"version: [", "", ""},
		"a list":             {"- version\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := apcore.ParseConfig([]byte(test.text), []string{test.variable})
			if !errors.Is(err, apcore.CodeConfigInvalid) || config != nil {
				t.Fatalf("%+v, %v", config, err)
			}
			if key, _ := apcore.AsError(err).Details["key"].(string); key != test.key {
				t.Errorf("about %q, want %q: %v", key, test.key, err)
			}
		})
	}
}

// A configuration file and the access rules beside it make an executor.
func TestConfiguredExecutor(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "apcore.yaml")
	if _, err := apcore.LoadConfig(path); !errors.Is(err, apcore.CodeConfigNotFound) || apcore.AsError(err).Details["path"] != path {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := apcore.LoadConfig(directory); !errors.Is(err, apcore.CodeConfigInvalid) {
		t.Errorf("a directory: %v", err)
	}
	must(t, os.WriteFile(path, []byte("version: 1.0.0\n"), 0o600))
	t.Setenv("APCORE_ACL_ROOT", filepath.Join(directory, "rules"))
	if _, err := apcore.LoadConfig(path); !errors.Is(err, apcore.CodeConfigInvalid) || apcore.AsError(err).Details["path"] != path {
		t.Errorf("a bad file: %v", err)
	}
	must(t, os.WriteFile(path, []byte(smallConfig+"executor: {max_call_depth: 1}\n"), 0o600))
	config, err := apcore.LoadConfig(path)
	must(t, err)
	open, err := config.ExecutorOptions(apcore.ACLOptions{})
	must(t, err)
	h := newHost(t, open).module("m", nil).module("deep", calls("m"))
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 1)
	_, err = h.call("deep", nil, nil)
	h.wants(err, apcore.CodeCallDepthExceeded, 2)
	must(t, os.Mkdir(filepath.Join(directory, "rules"), 0o700))
	must(t, os.WriteFile(filepath.Join(directory, "rules", apcore.ACLFileName), []byte("rules: []\n"), 0o600))
	closed, err := config.ExecutorOptions(apcore.ACLOptions{})
	must(t, err)
	h = newHost(t, closed).module("m", nil)
	_, err = h.call("m", nil, nil)
	h.wants(err, apcore.CodeACLDenied, 0)
	must(t, os.WriteFile(filepath.Join(directory, "rules", apcore.ACLFileName), []byte("rules: {}\n"), 0o600))
	if _, err := config.ExecutorOptions(apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
		t.Errorf("broken rules: %v", err)
	}
}
