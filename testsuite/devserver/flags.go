package main

import (
	"fmt"
	"io"
	"net/netip"

	"github.com/alecthomas/kong"
)

// startDev holds the flags of "devserver server start-dev". Names and meanings
// are those that the Go SDK's testsuite.StartDevServer passes, so that this
// program serves as its ExistingPath; --exit-with-parent is our own.
type startDev struct {
	IP                 string   `name:"ip" default:"127.0.0.1" placeholder:"ADDRESS" help:"Address to listen on; anyone who reaches it has full access."`
	Port               int      `name:"port" default:"7233" help:"Port of the gRPC frontend; 0 takes a free one."`
	UIPort             int      `name:"ui-port" default:"0" help:"Port of the web UI; 0 takes the one 1000 above --port if it is free, else any free one."`
	Headless           bool     `name:"headless" help:"Serve no web UI."`
	DBFilename         string   `name:"db-filename" placeholder:"FILE" help:"SQLite file that keeps the state over restarts, created when missing; the state is in memory when not given."`
	Namespace          []string `name:"namespace" sep:"none" placeholder:"NAME" help:"Namespace to create, beside \"default\" (repeatable)."`
	SearchAttribute    []string `name:"search-attribute" sep:"none" placeholder:"NAME=TYPE" help:"Search attribute to create in every namespace given; types are Text, Keyword, Int, Double, Bool, Datetime, KeywordList (repeatable)."`
	DynamicConfigValue []string `name:"dynamic-config-value" sep:"none" placeholder:"KEY=JSON" help:"Server setting; text needs JSON quotes (repeatable)."`
	LogLevel           string   `name:"log-level" default:"error" enum:"debug,info,warn,error,never" help:"Least level logged to stderr: ${enum}."`
	LogFormat          string   `name:"log-format" default:"pretty" enum:"pretty,text,json" help:"Form of the log lines: ${enum}; pretty and text are the same."`
	ExitWithParent     bool     `name:"exit-with-parent" help:"Stop when stdin is closed, which a parent's death does too."`
}

// commandLine is the tree of commands.
type commandLine struct {
	Server struct {
		StartDev startDev `cmd:"" name:"start-dev" help:"Start a Temporal server for tests and development."`
	} `cmd:"" help:"Run a server."`
}

// parseFlags reads the command line. It prints help to stdout and exits when
// asked for help.
func parseFlags(args []string, stdout, stderr io.Writer) (startDev, error) {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name("devserver"),
		kong.Description("A Temporal server in one process, for tests and development."),
		kong.Writers(stdout, stderr),
		kong.UsageOnError(),
	)
	if err != nil {
		return startDev{}, fmt.Errorf("build the command line: %w", err)
	}
	if _, err := parser.Parse(args); err != nil {
		return startDev{}, fmt.Errorf("%w (see devserver server start-dev --help)", err)
	}
	return line.Server.StartDev, nil
}

// options checks the flags and turns them into what the server needs. Each
// error names the flag and what it accepts.
func (f startDev) options() (options, error) {
	opts := options{headless: f.Headless, dbFile: f.DBFilename}
	var err error
	if opts.ip, err = parseIP(f.IP); err != nil {
		return options{}, err
	}
	if opts.port, err = parsePort("--port", f.Port); err != nil {
		return options{}, err
	}
	if opts.uiPort, err = parsePort("--ui-port", f.UIPort); err != nil {
		return options{}, err
	}
	if opts.namespaces, err = parseNamespaces(f.Namespace); err != nil {
		return options{}, err
	}
	if opts.searchAttributes, err = parseSearchAttributes(f.SearchAttribute); err != nil {
		return options{}, err
	}
	if opts.dynamicConfig, err = parseDynamicConfig(f.DynamicConfigValue); err != nil {
		return options{}, err
	}
	opts.log = newLogger(f.LogLevel, f.LogFormat)
	return opts, nil
}

// parseIP reads --ip; "localhost" is the IPv4 loopback address.
func parseIP(text string) (netip.Addr, error) {
	if text == "localhost" {
		text = loopback
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("--ip %q is no IP address: give one of this machine, such as %s", text, loopback)
	}
	return ip.WithZone(""), nil
}

// parsePort checks that a port is one, or 0.
func parsePort(flag string, port int) (int, error) {
	if port < 0 || port > maxPort {
		return 0, fmt.Errorf("%s %d is no port: give 1 to %d, or 0 for a free one", flag, port, maxPort)
	}
	return port, nil
}
