"""An app with job types that hang, take long, or eat memory."""
