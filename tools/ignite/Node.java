import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.ignite.Ignite;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.CacheWriteSynchronizationMode;
import org.apache.ignite.cache.affinity.rendezvous.RendezvousAffinityFunction;
import org.apache.ignite.cluster.ClusterState;
import org.apache.ignite.configuration.CacheConfiguration;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.ConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.configuration.WALMode;
import org.apache.ignite.failure.NoOpFailureHandler;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;
import org.apache.ignite.ssl.SslContextFactory;

/**
 * Node runs nodes of Apache Ignite in one JVM, on the loopback. Each group of arguments, which "--" separates, is a node:
 *
 * <pre>
 *   client=PORT      of the client connector
 *   discovery=PORT   of the node, and the port above it for other nodes
 *   joins=PORT       of the discovery of a node whose cluster it joins; without it, it is the one of its cluster
 *   resp=PORT        of the connector that speaks RESP, too; none without it
 *   small=BYTES      the most of a region named "small"; none without it
 *   dir=PATH         of its work, which it may fill
 *   tls=PATH         of a PKCS #12 key store whose password is "changeit": its client connector wants TLS
 *   users=true       it wants a user and a password (ignite, ignite at first), and keeps its data in dir
 * </pre>
 *
 * Its default region has 256 MiB. Caches have 32 partitions and count what is asked of them; "copied" has a copy
 * of each key on another node. A node whose region is full goes on, as it would not otherwise. Once all nodes are ready, each has a file "ready" in its directory. The JVM ends when its standard input does.
 */
public final class Node {
  public static void main(String[] args) throws Exception {
    List<Map<String, String>> groups = new ArrayList<>();
    groups.add(new HashMap<>());
    for (String arg : args) {
      if (arg.equals("--")) {
        groups.add(new HashMap<>());
        continue;
      }
      String[] parts = arg.split("=", 2);
      groups.get(groups.size() - 1).put(parts[0], parts[1]);
    }
    for (int i = 0; i < groups.size(); i++) {
      Ignite node = Ignition.start(configuration("node" + groups.get(i).get("discovery"), groups.get(i)));
      if (groups.get(i).containsKey("users")) {
        node.cluster().state(ClusterState.ACTIVE);
      }
    }
    for (Map<String, String> group : groups) {
      Files.createFile(Path.of(group.get("dir"), "ready"));
    }
    while (System.in.read() >= 0) {
      // whoever has started it is there
    }
    Runtime.getRuntime().halt(0);
  }

  private static IgniteConfiguration configuration(String name, Map<String, String> of) {
    String discovery = of.get("discovery");
    DataRegionConfiguration region = new DataRegionConfiguration().setName("default").setInitialSize(16L << 20).setMaxSize(256L << 20).setMetricsEnabled(true);
    DataStorageConfiguration storage = new DataStorageConfiguration().setDefaultDataRegionConfiguration(region)
        .setSystemRegionInitialSize(16L << 20).setSystemRegionMaxSize(64L << 20);
    IgniteConfiguration c = new IgniteConfiguration()
        .setIgniteInstanceName(name)
        .setConsistentId(name)
        .setLocalHost("127.0.0.1")
        .setWorkDirectory(new File(of.get("dir")).getAbsolutePath())
        .setMetricsLogFrequency(0)
        .setFailureHandler(new NoOpFailureHandler())
        .setDataStorageConfiguration(storage)
        .setConnectorConfiguration(null)
        .setCommunicationSpi(new TcpCommunicationSpi().setLocalPort(Integer.parseInt(discovery) + 1))
        .setDiscoverySpi(new TcpDiscoverySpi().setLocalPort(Integer.parseInt(discovery)).setLocalPortRange(0)
            .setIpFinder(new TcpDiscoveryVmIpFinder().setAddresses(List.of("127.0.0.1:" + of.getOrDefault("joins", discovery)))))
        .setPublicThreadPoolSize(2).setSystemThreadPoolSize(4).setStripedPoolSize(2).setQueryThreadPoolSize(2).setManagementThreadPoolSize(2)
        .setServiceThreadPoolSize(1).setAsyncCallbackPoolSize(1).setDataStreamerThreadPoolSize(1).setUtilityCachePoolSize(2);
    ClientConnectorConfiguration clients = new ClientConnectorConfiguration().setHost("127.0.0.1").setPort(Integer.parseInt(of.get("client"))).setPortRange(0)
        .setThreadPoolSize(4);
    if (of.containsKey("tls")) {
      SslContextFactory factory = new SslContextFactory();
      factory.setKeyStoreType("PKCS12");
      factory.setKeyStoreFilePath(of.get("tls"));
      factory.setKeyStorePassword("changeit".toCharArray());
      factory.setTrustManagers(SslContextFactory.getDisabledTrustManager());
      clients.setSslEnabled(true).setUseIgniteSslContextFactory(false).setSslClientAuth(false).setSslContextFactory(factory);
    }
    c.setClientConnectorConfiguration(clients);
    List<CacheConfiguration<?, ?>> caches = new ArrayList<>(List.of(cache("*"), cache("items"),
        cache("copied").setBackups(1).setWriteSynchronizationMode(CacheWriteSynchronizationMode.FULL_SYNC)));
    if (of.containsKey("resp")) {
      c.setConnectorConfiguration(new ConnectorConfiguration().setHost("127.0.0.1").setPort(Integer.parseInt(of.get("resp"))).setPortRange(0));
      caches.add(cache("redis-ignite-internal-cache-0"));
    }
    if (of.containsKey("small")) {
      long most = Long.parseLong(of.get("small"));
      storage.setDataRegionConfigurations(new DataRegionConfiguration().setName("small").setInitialSize(most).setMaxSize(most).setMetricsEnabled(true));
    }
    if (of.containsKey("users")) {
      region.setPersistenceEnabled(true);
      storage.setWalSegmentSize(1 << 20).setWalSegments(2).setWalMode(WALMode.NONE);
      c.setAuthenticationEnabled(true);
    }
    return c.setCacheConfiguration(caches.toArray(new CacheConfiguration[0]));
  }

  private static CacheConfiguration<?, ?> cache(String name) {
    return new CacheConfiguration<>(name).setStatisticsEnabled(true).setAffinity(new RendezvousAffinityFunction(false, 32));
  }

  private Node() {}
}
