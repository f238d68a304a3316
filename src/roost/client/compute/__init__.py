"""What Nova, the compute service of OpenStack, knows: servers, migrations and flavours."""
