package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	clusterName = "active"
	// clusterID is constant, so that a client sees the same server after a
	// restart, with a file or without.
	clusterID = "6f0c9f3e-5a1d-4f43-9b57-3a7de0c5d1a2"
	// historyShards is written into each file at its creation and can never
	// change for it.
	historyShards = 1
	// stopTimeout is how long a graceful stop may take. The server itself
	// needs one second when clients hold long polls.
	stopTimeout = 15 * time.Second
)

// server is one Temporal server with its web UI.
type server struct {
	opts     options
	ports    ports
	temporal temporal.Server
	ui       *webUI // nil when headless
}

// newServer prepares the store and puts a server together. Nothing listens yet.
func newServer(opts options) (*server, error) {
	chosen, err := choosePorts(opts)
	if err != nil {
		return nil, err
	}
	store := newStore(opts.dbFile)
	if err := store.prepare(context.Background(), opts.namespaces, opts.searchAttributes); err != nil {
		return nil, err
	}
	srv := &server{opts: opts, ports: chosen}
	srv.temporal, err = temporal.NewServer(
		temporal.WithConfig(srv.config(store)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(srv.hosts()),
		temporal.WithLogger(opts.log),
		temporal.WithDynamicConfigClient(opts.dynamicConfig),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
	)
	if err != nil {
		return nil, store.explain(fmt.Errorf("put the server together: %w", err))
	}
	if !opts.headless {
		srv.ui = newWebUI(opts.ip, chosen.ui, srv.address())
	}
	return srv, nil
}

// start starts the services and the UI. It returns before they are ready.
func (s *server) start() error {
	if err := s.temporal.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	if s.ui != nil {
		s.ui.start()
	}
	return nil
}

// stop stops everything gracefully, with a limit of [stopTimeout].
func (s *server) stop() error {
	s.opts.log.stopping()
	if s.ui != nil {
		s.ui.stop()
	}
	done := make(chan error, 1)
	go func() { done <- s.temporal.Stop() }()
	select {
	case err := <-done:
		return err
	case <-time.After(stopTimeout):
		return errors.New("the server did not stop in " + stopTimeout.String() + "; leaving it to the end of the process")
	}
}

// address is where clients on this machine reach the frontend.
func (s *server) address() string {
	return reachable(netip.AddrPortFrom(s.opts.ip, uint16(s.ports.frontend)))
}

// config is the static configuration of the Temporal server.
func (s *server) config(store store) *config.Config {
	return &config.Config{
		Global: config.Global{
			Membership: config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: loopback},
		},
		Persistence: config.Persistence{
			DefaultStore:     sqliteplugin.PluginName,
			VisibilityStore:  sqliteplugin.PluginName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{sqliteplugin.PluginName: {SQL: store.sql}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled:                true,
				InitialFailoverVersion: 1,
				RPCAddress:             s.address(),
				ClusterID:              clusterID,
			}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(s.opts.ip.String(), s.ports.frontend),
			string(primitives.HistoryService):  service(loopback, s.ports.history),
			string(primitives.MatchingService): service(loopback, s.ports.matching),
			string(primitives.WorkerService):   service(loopback, s.ports.worker),
		},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: s.address()},
	}
}

// service is the configuration of one service on one address.
func service(ip string, port int) config.Service {
	return config.Service{RPC: config.RPC{BindOnIP: ip, GRPCPort: port}}
}

// hosts tells each service where the others are, so that no membership
// protocol has to find out.
func (s *server) hosts() map[primitives.ServiceName]static.Hosts {
	at := func(port int) static.Hosts {
		return static.SingleLocalHost(netip.AddrPortFrom(netip.MustParseAddr(loopback), uint16(port)).String())
	}
	return map[primitives.ServiceName]static.Hosts{
		primitives.FrontendService: static.SingleLocalHost(s.address()),
		primitives.HistoryService:  at(s.ports.history),
		primitives.MatchingService: at(s.ports.matching),
		primitives.WorkerService:   at(s.ports.worker),
	}
}
