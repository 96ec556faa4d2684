package main

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// connection holds the flags that say where the server is.
type connection struct {
	Address   string `help:"Server as host:port; default from the environment or profile." placeholder:"HOST:PORT"`
	Namespace string `help:"Namespace; default from the environment or profile."`
	Profile   string `help:"Profile of the client configuration file."`
}

// options are those of the environment and profile, with the flags over them.
func (c *connection) options() (client.Options, error) {
	options, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{ConfigFileProfile: c.Profile})
	if err != nil {
		return options, fmt.Errorf("client configuration: %w", err)
	}
	if c.Address != "" {
		options.HostPort = c.Address
	}
	if c.Namespace != "" {
		options.Namespace = c.Namespace
	}
	if options.Namespace == "" {
		options.Namespace = client.DefaultNamespace
	}
	return options, nil
}

func (c *connection) dial(ctx context.Context) (client.Client, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	connected, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("no server at %s: %w (set TEMPORAL_ADDRESS or --address)", options.HostPort, err)
	}
	return connected, nil
}

// approvals connects as an approver; close the returned client.
func (c *connection) approvals(ctx context.Context) (*temporal.Approvals, client.Client, error) {
	connected, err := c.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	approvals, err := temporal.NewApprovals(connected, temporal.ApprovalsOptions{})
	return approvals, connected, err
}
