package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/server/common/dynamicconfig"
)

// parse is what the program does with its command line.
func parse(args ...string) (options, error) {
	flags, err := parseFlags(append([]string{"server", "start-dev"}, args...), io.Discard, io.Discard)
	if err != nil {
		return options{}, err
	}
	return flags.options()
}

func TestFlagsOfTheSDKAreTaken(t *testing.T) {
	opts, err := parse("--ip", "localhost", "--port", "4711", "--namespace", "mine",
		"--dynamic-config-value", "frontend.enableServerVersionCheck=false",
		"--log-level", "warn", "--log-format", "pretty", "--headless",
		"--db-filename", "some.db", "--ui-port", "4712", "--search-attribute", "Color=KeywordList")
	if err != nil {
		t.Fatal(err)
	}
	if got := opts.ip.String(); got != loopback || opts.port != 4711 || opts.uiPort != 4712 || !opts.headless || opts.dbFile != "some.db" {
		t.Errorf("options are %+v", opts)
	}
	if diff := cmp.Diff([]string{"mine", "default"}, opts.namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if got := opts.searchAttributes["Color"].String(); got != "KeywordList" {
		t.Errorf("type of search attribute Color is %q", got)
	}
}

func TestRepeatedFlagsAddUp(t *testing.T) {
	opts, err := parse("--namespace", "a,b", "--namespace", "default", "--namespace", "a,b",
		"--search-attribute", "A=keyword", "--search-attribute", "B=Int", "--search-attribute", "A=Keyword")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a,b", "default"}, opts.namespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	if len(opts.searchAttributes) != 2 {
		t.Errorf("search attributes are %v", opts.searchAttributes)
	}
}

func TestDynamicConfig(t *testing.T) {
	opts, err := parse(
		"--dynamic-config-value", "HISTORY.timerProcessorMaxPollRPS=7",
		"--dynamic-config-value", "history.timerProcessorMaxPollRPS=8")
	if err != nil {
		t.Fatal(err)
	}
	read := func(key string) any {
		values := opts.dynamicConfig.GetValue(dynamicconfig.MakeKey(key))
		if len(values) != 1 {
			t.Fatalf("%s has %d values", key, len(values))
		}
		return values[0].Value
	}
	want := map[string]any{
		"history.transferProcessorMaxPollRPS":            10_000,
		"history.timerProcessorMaxPollRPS":               8, // the last flag wins over the first and the default
		"history.visibilityProcessorMaxPollRPS":          10_000,
		"system.forceSearchAttributesCacheRefreshOnRead": false,
	}
	for key, value := range want {
		if got := read(key); got != value {
			t.Errorf("%s is %v (%T), want %v", key, got, got, value)
		}
	}
}

func TestWrongFlagsNameThemselves(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string // all in the message
	}{
		{"port too high", []string{"--port", "65536"}, []string{"--port 65536", "0 for a free one"}},
		{"port negative", []string{"--ui-port", "-1"}, []string{"--ui-port"}},
		{"port no number", []string{"--port", "many"}, []string{"--port", "many"}},
		{"ip is a name", []string{"--ip", "example.com"}, []string{"--ip", "example.com", loopback}},
		{"namespace empty", []string{"--namespace", ""}, []string{"--namespace", "without spaces"}},
		{"namespace with a space", []string{"--namespace", "a b"}, []string{"--namespace", "a b"}},
		{"namespace of the server", []string{"--namespace", "temporal-system"}, []string{"--namespace", "another name"}},
		{"attribute without type", []string{"--search-attribute", "Color"}, []string{"--search-attribute", "NAME=TYPE"}},
		{"attribute of unknown type", []string{"--search-attribute", "Color=Hue"}, []string{"--search-attribute", "Hue", "Keyword, KeywordList"}},
		{"attribute of no type", []string{"--search-attribute", "Color=Unspecified"}, []string{"--search-attribute", "Unspecified"}},
		{"attribute of the server", []string{"--search-attribute", "WorkflowId=Keyword"}, []string{"--search-attribute", "another"}},
		{"attribute of two types", []string{"--search-attribute", "A=Int", "--search-attribute", "A=Bool"}, []string{"--search-attribute", "A=Bool", "Int"}},
		{"setting without key", []string{"--dynamic-config-value", "7"}, []string{"--dynamic-config-value", "KEY=JSON"}},
		{"setting that is no JSON", []string{"--dynamic-config-value", "limit.maxIDLength=seven"}, []string{"limit.maxIDLength", "quotes"}},
		{"setting unknown", []string{"--dynamic-config-value", "no.such=1"}, []string{"no.such", "unregistered"}},
		{"setting of the wrong type", []string{"--dynamic-config-value", `limit.maxIDLength="7"`}, []string{"limit.maxIDLength", "not int"}},
		{"log level", []string{"--log-level", "loud"}, []string{"--log-level", "error"}},
		{"log format", []string{"--log-format", "xml"}, []string{"--log-format", "json"}},
		{"flag unknown", []string{"--no-such"}, []string{"--no-such", "--help"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse(test.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		want string
	}{
		{"wrong flag", []string{"--port", "-1"}, exitUsage, "--port"},
		{"directory missing", []string{"--port", "0", "--db-filename", "no/such/dir/x.db"}, exitFailed, "create its directory"},
		{"file is no database", []string{"--port", "0", "--db-filename", "main_test.go"}, exitFailed, "--db-filename main_test.go"},
		{"too many attributes", []string{"--port", "0",
			"--search-attribute", "A=Bool", "--search-attribute", "B=Bool",
			"--search-attribute", "C=Bool", "--search-attribute", "D=Bool"}, exitFailed, "room for 3 of type Bool"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := command(append(test.args, "--exit-with-parent")...) // at once, if it starts after all
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != test.code {
				t.Errorf("ended with %v, want exit code %d", err, test.code)
			}
			if stdout.Len() != 0 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("stdout %q, stderr %q lacks %q", &stdout, &stderr, test.want)
			}
		})
	}
}
