package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	uioptions "github.com/temporalio/ui-server/v2/server/server_options"
)

// webUI is Temporal's web UI.
type webUI struct {
	server *uiserver.Server
	url    string
}

// newWebUI puts a UI together that talks to the frontend at an address. It
// calls nobody else: no news, no look for newer versions.
func newWebUI(ip netip.Addr, port int, frontend string) *webUI {
	host := ip.String()
	if ip.Is6() {
		host = "[" + host + "]" // the UI joins host and port with a bare colon
	}
	cfg := &uiconfig.Config{
		Host:                host,
		Port:                port,
		TemporalGRPCAddress: frontend,
		EnableUI:            true,
		DefaultNamespace:    defaultNamespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		CORS:                uiconfig.CORS{CookieInsecure: true}, // served over plain HTTP
	}
	return &webUI{
		server: uiserver.NewServer(uioptions.WithConfigProvider(cfg)),
		url:    "http://" + reachable(netip.AddrPortFrom(ip, uint16(port))),
	}
}

// start serves the UI in the background. The process exits if it cannot listen.
func (u *webUI) start() { go func() { _ = u.server.Start() }() }

// stop ends the UI at once.
func (u *webUI) stop() { u.server.Stop() }

// check reports whether the UI serves.
func (u *webUI) check(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url+"/healthz", nil)
	if err != nil {
		return err
	}
	// Not the default client, which may send the request to a proxy.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the web UI at %s answers %s", u.url, response.Status)
	}
	return nil
}
