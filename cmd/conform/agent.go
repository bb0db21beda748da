package main

import (
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmasim/rdmasim/internal/cli/input/commands"
)

type agentOptions struct {
	listen, key, device string
	port, gidIndex      int
}

// newAgent makes the command of the second node. serve carries it out, or starts a program that
// can.
func newAgent(serve func(*cobra.Command, *agentOptions) error) *cobra.Command {
	o := &agentOptions{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Serve as the second node of a hardware run",
		Long: "agent offers a device of this machine to conform --target=hw --peer ADDRESS on another machine. It starts processes\n" +
			"that carry out a fixed set of commands. On a Unix socket it serves its own user; on TCP it serves whoever holds the\n" +
			"shared key, and both ends prove that they hold it. It runs until it is interrupted.",
		Example: "  openssl rand -hex 32 >key; chmod 600 key        # the same file on both machines\n" +
			"  conform agent --listen tcp:0.0.0.0:7471 --key key --device mlx5_0\n" +
			"  conform --target=hw --peer tcp:other-machine:7471 --peer-key key",
		Args: commands.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listen == "" {
				return usagef("agent needs --listen unix:PATH or --listen tcp:HOST:PORT")
			}
			if kind, _, _ := strings.Cut(o.listen, ":"); kind != "unix" && kind != "tcp" {
				return usagef("--listen %s: an address is unix:PATH or tcp:HOST:PORT; did you mean --listen %s?", o.listen, meantAddress(o.listen))
			}
			if err := checkPort(o.port, o.gidIndex); err != nil {
				return err
			}
			return serve(cmd, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "`ADDRESS` to listen on: unix:PATH or tcp:HOST:PORT")
	f.StringVar(&o.key, "key", "", "`FILE` with the shared key for TCP: at least 32 bytes, and only its owner may read it")
	f.StringVar(&o.device, "device", "", "device to offer (default: the first with an active port)")
	f.IntVar(&o.port, "port", 0, "port of the device (default: the first that is active)")
	f.IntVar(&o.gidIndex, "gid-index", defaultGIDIndex, "index of the GID that connections use (default: RoCE v2 with an IPv4 address)")
	return cmd
}

// meantAddress puts the kind before an address that has none, and completes an IP address or a port
// that stands alone.
func meantAddress(s string) string {
	if net.ParseIP(s) != nil {
		return "tcp:" + net.JoinHostPort(s, "7471")
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return "tcp:0.0.0.0:" + s
	}
	if strings.Contains(s, "/") || !strings.Contains(s, ":") {
		return "unix:" + s
	}
	return "tcp:" + s
}
