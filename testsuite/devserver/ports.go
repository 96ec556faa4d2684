package main

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
)

const (
	loopback = "127.0.0.1"
	maxPort  = 65535
	// uiPortOffset is how far the web UI is above the frontend by default.
	uiPortOffset = 1000
)

// ports are where the parts of one server listen.
type ports struct {
	frontend, history, matching, worker int
	ui                                  int // 0 when headless
}

// choosePorts checks the ports asked for and finds free ones for the rest. The
// inner services listen on the loopback address whatever --ip says.
func choosePorts(opts options) (ports, error) {
	if err := checkFree("--port", opts.ip, opts.port); err != nil {
		return ports{}, err
	}
	if !opts.headless {
		if err := checkFree("--ui-port", opts.ip, opts.uiPort); err != nil {
			return ports{}, err
		}
	}
	inner, err := freePorts(netip.MustParseAddr(loopback), 3)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{frontend: opts.port, history: inner[0], matching: inner[1], worker: inner[2]}
	outer, err := freePorts(opts.ip, 2)
	if err != nil {
		return ports{}, err
	}
	if chosen.frontend == 0 {
		chosen.frontend = outer[0]
	}
	if !opts.headless {
		chosen.ui = uiPort(opts, outer[1])
	}
	return chosen, nil
}

// uiPort is the port asked for, else the one near the frontend's, else free.
func uiPort(opts options, free int) int {
	near := opts.port + uiPortOffset
	switch {
	case opts.uiPort != 0:
		return opts.uiPort
	case opts.port != 0 && near <= maxPort && checkFree("", opts.ip, near) == nil:
		return near
	default:
		return free
	}
}

// checkFree reports an error when somebody listens on a port already. The
// server itself would only exit.
func checkFree(flag string, ip netip.Addr, port int) error {
	if port == 0 {
		return nil
	}
	listener, err := listen(ip, port)
	if err != nil {
		return fmt.Errorf("%s %d: %w: stop what listens there, or give 0 for a free port", flag, port, err)
	}
	return listener.Close()
}

// freePorts returns different ports that nothing listens on.
func freePorts(ip netip.Addr, count int) ([]int, error) {
	var listeners []net.Listener // all open until the last is found, so that ports differ
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	var free []int
	for range count {
		listener, err := listen(ip, 0)
		if err != nil {
			return nil, fmt.Errorf("--ip %s: find a free port: %w", ip, err)
		}
		listeners = append(listeners, listener)
		address, err := netip.ParseAddrPort(listener.Addr().String())
		if err == nil {
			err = keepFromOthers(listener, reachable(address))
		}
		if err != nil {
			return nil, fmt.Errorf("--ip %s: reserve a free port: %w", ip, err)
		}
		free = append(free, int(address.Port()))
	}
	return free, nil
}

// keepFromOthers leaves a closed connection behind on the port of a listener.
// While the system remembers it (60 s on Linux), the port is given to nobody who
// asks for a free one, yet whoever names it may listen on it. macOS and Windows
// hand out ports in sequence and need no such thing.
func keepFromOthers(listener net.Listener, address string) error {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		return nil
	}
	client, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	server, err := listener.Accept()
	if err != nil {
		return err
	}
	return server.Close() // the side that closes first is the one remembered
}

// listen opens a TCP listener.
func listen(ip netip.Addr, port int) (net.Listener, error) {
	return net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String())
}

// reachable is the address that a client on this machine uses to reach a
// listener: the loopback address when it listens on all.
func reachable(address netip.AddrPort) string {
	ip := address.Addr().Unmap()
	if ip.IsUnspecified() && ip.Is4() {
		ip = netip.MustParseAddr(loopback)
	} else if ip.IsUnspecified() {
		ip = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(ip, address.Port()).String()
}
